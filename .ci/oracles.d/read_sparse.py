# Copies Matrix Market files, and turns other files into such: read_sparse.py TREE DONE
import glob, os, re, shutil, sys
tree, done = sys.argv[1:]
os.makedirs(done + "/malformed")

def copy(pattern, folder=""):
    found = glob.glob(f"{tree}/{pattern}")
    assert found, pattern
    for path in found:
        shutil.copy(path, os.path.join(done, folder))

def write(name, kind, rows, cols, entries):
    with open(f"{done}/{name}.mtx", "w") as file:
        file.write(f"%%MatrixMarket matrix coordinate {kind}\n{rows} {cols} {len(entries)}\n")
        file.writelines(" ".join(map(str, entry)) + "\n" for entry in entries)

copy("Mongoose/Matrix/bcspwr*.mtx")
copy("SPQR/Matrix/arrow.mtx")
shutil.copy(glob.glob(tree + "/SPQR/Matrix/Franz6*.mtx")[0], done + "/Franz6.mtx")
copy("CHOLMOD/Demo/Matrix/mangle*.mtx", "malformed")
copy("Mongoose/Tests/Matrix/bad_*.mtx", "malformed")

# Row, column and value a line, from 0; of bcsstk16 one triangle.
for name, symmetry in ("bcsstk16", "symmetric"), ("mbeacxc", "general"):
    with open(f"{tree}/CSparse/Matrix/{name}") as file:
        entries = [(int(row) + 1, int(col) + 1, value) for row, col, value in map(str.split, file)]
    rows, cols = (max(entry[i] for entry in entries) for i in (0, 1))
    write(name, f"real {symmetry}", rows, cols, entries)

# Graphs: a line of neighbours for each node, from 1.
for name in "4elt", "copter2", "mdual":
    with open(f"{tree}/graphs/{name}.graph") as file:
        nodes, edges = map(int, next(file).split())
        links = [(row, col) for row, line in enumerate(file, 1) for col in map(int, line.split()) if col < row]
    assert len(links) == edges, name
    write(name, "pattern symmetric", nodes, nodes, links)

# Rutherford-Boeing: pointers, rows and values by columns, in fields of fixed width.
lines = open(glob.glob(tree + "/RBio/*/private/west0479.rb")[0]).read().splitlines()
rows, cols, count = map(int, lines[2].split()[1:4])
fields, at = [], 4
for (a_line, width), total in zip(re.findall(r"\((\d+)[IE](\d+)", lines[3]), (cols + 1, count, count)):
    a_line, width = int(a_line), int(width)
    text = [line[i * width:(i + 1) * width] for line in lines[at:at - (-total // a_line)] for i in range(a_line)]
    fields.append(text[:total])
    at -= -total // a_line
begin = [int(word) - 1 for word in fields[0]]
entries = [(int(fields[1][i]), col + 1, fields[2][i].strip()) for col in range(cols) for i in range(begin[col], begin[col + 1])]
write("west0479", "real general", rows, cols, entries)
