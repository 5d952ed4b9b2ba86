def perceptron(inputs, widths):
    """Linear, batch norm, ReLU; ...; a last linear layer without bias."""
    layers = []
    for width in widths[:-1]:
        layers += [nn.Linear(inputs, width), nn.BatchNorm1d(width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, widths[-1], bias=False))
