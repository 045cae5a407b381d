# Takes the libraries out of the wheel of NVRTC: unpack_nvrtc.py FOLDER
import glob, shutil, sys, zipfile
with zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0]) as wheel:
    for name in wheel.namelist():
        if "/libnvrtc" in name and ".so." in name:
            with wheel.open(name) as packed, open(f"{sys.argv[1]}/{name.split('/')[-1]}", "wb") as file:
                shutil.copyfileobj(packed, file)
