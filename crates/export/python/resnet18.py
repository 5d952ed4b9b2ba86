class Block(nn.Module):
    """Two convolutions; the stride is in the second, which then is padded on the right and below only."""

    def __init__(self, inputs, width, stride, first):
        super().__init__()
        self.stride = stride
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, bias=False), nn.BatchNorm2d(width)
        shortcut = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))
        self.downsample = shortcut if first else nn.Identity()

    def forward(self, x):
        inner = self.bn1(self.conv1(x)).relu()
        inner = functional.pad(inner, (1, 1, 1, 1) if self.stride == 1 else (0, 1, 0, 1))
        return (self.bn2(self.conv2(inner)) + self.downsample(x)).relu()


class ResNet18(nn.Module):
    """(batch, 3, side, side) -> (batch, 8 width, side / 32, side / 32). Not torchvision's resnet18: strides, padding
    and shortcuts differ, and the same weights in that network give other numbers without any warning."""

    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, bias=False), nn.BatchNorm2d(width)
        inputs = width
        for stage in range(4):
            outputs, stride = width << stage, 1 if stage == 0 else 2
            blocks = Block(inputs, outputs, stride, True), Block(outputs, outputs, 1, False)
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
            inputs = outputs

    def forward(self, x):
        x = self.bn1(self.conv1(functional.pad(x, (2, 3, 2, 3)))).relu()
        x = functional.max_pool2d(functional.pad(x, (0, 1, 0, 1), value=-10000.0), 3, 2)
        return self.layer4(self.layer3(self.layer2(self.layer1(x))))
