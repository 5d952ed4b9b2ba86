def read_safetensors(path):
    """The tensors of a .safetensors file by name (the package of that name is not needed)."""
    data = Path(path).read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    types = {"F32": torch.float32, "I64": torch.int64, "U8": torch.uint8}
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            numbers = torch.frombuffer(bytearray(data[start + first : start + last]), dtype=types[entry["dtype"]])
            tensors[name] = numbers.view(entry["shape"])
    return tensors


def load(weights=None):
    """The network with its weights (.pth or .safetensors; by default the file that was exported with this one), ready to
    be used: batch norms are fixed, nothing is trained."""
    weights = Path(weights or Path(__file__).with_name(WEIGHTS))
    if weights.suffix == ".safetensors":
        tensors = read_safetensors(weights)
    else:
        tensors = torch.load(weights, map_location="cpu", weights_only=True)
    network = Network()
    # A checkpoint of a run holds more: predictor, probes, optimiser.
    network.load_state_dict({name: tensors[name] for name in network.state_dict() if name in tensors})
    return network.eval().requires_grad_(False)


def prepare(images):
    """uint8 images (batch, 3, height, width) of any size -> the network's size, as training and `equicaps embed` resize:
    the whole image, without cropping, rounded to whole levels."""
    size = (IMAGE_SIZE, IMAGE_SIZE)
    resized = functional.interpolate(images.float(), size, mode="bilinear", antialias=True)
    return (resized + 0.5).floor().clamp(0, 255).to(torch.uint8)


def check(network, path):
    """The largest difference between what the network gives here and what it gave where it was exported, as a share of
    the length of the features of an image."""
    expected = read_safetensors(path)
    images = expected.pop("images")
    with torch.no_grad():
        found = network(images)
    found = found if isinstance(found, dict) else {"representation": found}
    if found.keys() != expected.keys():
        raise SystemExit(f"the network gives {list(found)}, but {path} holds {list(expected)}")
    largest = 0.0
    for name, wanted in expected.items():
        difference = (found[name] - wanted).flatten(1).norm(dim=1) / wanted.flatten(1).norm(dim=1).clamp_min(1e-12)
        print(f"{name} {tuple(wanted.shape)}: largest difference {difference.max():.1e} of the features' norm")
        largest = max(largest, difference.max().item())
    return largest


if __name__ == "__main__":
    # python THIS_FILE [WEIGHTS [CHECK]]
    weights = sys.argv[1] if len(sys.argv) > 1 else None
    expected = sys.argv[2] if len(sys.argv) > 2 else Path(__file__).with_name(CHECK)
    sys.exit(0 if check(load(weights), expected) <= 1e-4 else "the features are not those of the exported network")
