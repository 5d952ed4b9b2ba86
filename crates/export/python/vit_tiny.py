class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(2, 3) * (width // self.heads) ** -0.5).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    """x += attention(norm1(x)); x += mlp(norm2(x))."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(width, 4 * width), "fc2": nn.Linear(4 * width, width)})

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp["fc2"](functional.gelu(self.mlp["fc1"](self.norm2(x))))


class VisionTransformer(nn.Module):
    """(batch, 3, side, side) -> (batch, width, side / patch, side / patch): the tokens of the patches; the class token
    takes part in attention and is left out at the end."""

    def __init__(self, side, patch, width, depth, heads):
        super().__init__()
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + (side // patch) ** 2, width))
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, width, patch, patch)})
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)

    def forward(self, x):
        x = self.patch_embed["proj"](x)
        shape = x.shape
        x = torch.cat([self.cls_token.expand(shape[0], -1, -1), x.flatten(2).transpose(1, 2)], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.norm(x)[:, 1:].transpose(1, 2).reshape(shape)
