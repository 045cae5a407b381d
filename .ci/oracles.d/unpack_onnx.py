# Takes the node cases and the converted ones out of the wheel of ONNX: unpack_onnx.py FOLDER
import glob, sys, zipfile
with zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0]) as wheel:
    data = "onnx/backend/test/data/"
    wanted = (data + "node/", data + "pytorch-converted/")
    wheel.extractall(sys.argv[1], [name for name in wheel.namelist() if name.startswith(wanted)])
