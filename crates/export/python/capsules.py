class Capsules(nn.Module):
    """A map of features -> activations (batch, capsules), which sum to 1, and poses (batch, capsules, n, n)."""

    def __init__(self, inputs, capsules, side, positions):
        super().__init__()
        self.capsules, self.side = capsules, side
        pose = side * side
        self.conv_a, self.bn_a = nn.Conv2d(inputs, capsules, 3, padding=1, bias=False), nn.BatchNorm2d(capsules)
        self.conv_pose = nn.Conv2d(inputs, capsules * pose, 3, padding=1, bias=False)
        self.bn_pose = nn.BatchNorm2d(capsules * pose)
        lower = positions * capsules
        self.fc = nn.ParameterDict({
            "W1": torch.zeros(lower, capsules * pose, pose),
            "W2": torch.zeros(lower, capsules, pose),
            "b2": torch.zeros(1, 1, lower, capsules),
        })

    def forward(self, x):
        batch, count, pose = len(x), self.capsules, self.side**2
        a = self.bn_a(self.conv_a(x)).sigmoid().permute(0, 2, 3, 1).reshape(batch, -1)
        u = self.bn_pose(self.conv_pose(x)).permute(0, 2, 3, 1).reshape(batch, -1, pose)
        route = (torch.einsum("bip,ijp->bij", u, self.fc["W2"]) + self.fc["b2"][0]).softmax(2) * a[..., None]
        votes = torch.einsum("bip,ijqp->bijq", u, self.fc["W1"].view(-1, count, pose, pose))
        activations = route.sum(1) / a.sum(1, keepdim=True)
        poses = (route[..., None] * votes).sum(1) / route.sum(1)[..., None]
        return activations, poses.view(batch, count, self.side, self.side)
