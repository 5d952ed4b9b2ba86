// Muon's kernels on the host, one update of matrices of odd sizes, against the formula in float64. Compiled and run by muon.sh, for each
// type that they have.

#include "tensor.h"

typedef STORAGE T;
#include "../../crates/engine/src/ops/muon.cu"

static const float DECAY = 0.02f, MOMENTUM = 0.95f, RATE = 0.01f, A = 3.4445f, B = -4.775f, C = 2.0315f;

static struct {
    std::vector<float> values, gradients, momenta, squares;
    std::vector<Matrix> matrices;
    std::vector<Part> patches, square_tiles, tiles;
    T *x, *next, *gram, *factor;
} all;

static void momentum(uint64_t, uint64_t) {
    muon_momentum(all.values.data(), all.gradients.data(), all.momenta.data(), all.matrices.data(), all.patches.data(),
                  all.squares.data(), DECAY, MOMENTUM);
}
static void start(uint64_t, uint64_t) {
    muon_start(all.values.data(), all.gradients.data(), all.momenta.data(), all.matrices.data(), all.patches.data(),
               all.squares.data(), all.x, DECAY, MOMENTUM);
}
static void gram(uint64_t, uint64_t) { muon_gram(all.matrices.data(), all.square_tiles.data(), all.x, all.gram); }
static void factor(uint64_t, uint64_t) {
    muon_factor(all.matrices.data(), all.square_tiles.data(), all.gram, all.factor, B, C);
}
static void turn(uint64_t, uint64_t) {
    muon_turn(all.matrices.data(), all.tiles.data(), all.factor, all.x, all.next, A);
}
static void apply(uint64_t, uint64_t) {
    muon_apply(all.values.data(), all.matrices.data(), all.patches.data(), all.x, RATE);
}
static void launch(host::Kernel kernel, size_t blocks) {
    unsigned sizes[6] = {(unsigned)blocks, 1, 1, 256, 1, 1};
    uint64_t arguments[2] = {};
    host_launch((void*)kernel, sizes, arguments);
}

// Memory that nothing was written to yet: not a number.
static T* unwritten(size_t count) {
    T* memory = (T*)aligned_alloc(128, count * sizeof(T));
    memset(memory, 0xff, count * sizeof(T));
    return memory;
}

typedef std::vector<double> Numbers;
static Numbers product(const Numbers& a, const Numbers& b, int rows, int inner, int columns) {
    Numbers result((size_t)rows * columns);
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < inner; k++)
            for (int j = 0; j < columns; j++) result[i * columns + j] += a[i * inner + k] * b[k * columns + j];
    return result;
}

// The update of a matrix over its scale.
static Numbers update(const Matrix& m, const std::vector<float>& values, const std::vector<float>& momenta) {
    int rows = m.rows, columns = m.columns;
    Numbers x((size_t)rows * columns), turned(x.size());
    double squares = 0;
    for (size_t i = 0; i < x.size(); i++) {
        double d = (double)all.gradients[m.start + i] + (double)DECAY * values[m.start + i];
        x[i] = d + MOMENTUM * (MOMENTUM * momenta[m.start + i] + d);
        squares += x[i] * x[i];
    }
    for (double& value : x) value /= sqrt(squares);
    for (int iteration = 0; iteration < 5; iteration++) {
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) turned[j * rows + i] = x[i * columns + j];
        Numbers products = product(x, turned, rows, columns, rows), squared = product(products, products, rows, rows, rows);
        for (size_t i = 0; i < squared.size(); i++) squared[i] = B * products[i] + C * squared[i];
        Numbers step = product(squared, x, rows, rows, columns);
        for (size_t i = 0; i < x.size(); i++) x[i] = A * x[i] + step[i];
    }
    return x;
}

// The lists of muon/cuda.rs.
static void add(std::vector<Part>& list, int matrix, int down, int across) {
    for (int part = 0; part < down * across; part++) list.push_back({matrix, part / across, part % across, 0});
}

int main() {
    const int sizes[][2] = {{40, 150}, {300, 129}, {128, 128}, {130, 128}, {5, 7}};
    int length = 0, x = 0, products = 0;
    for (const int* size : sizes) {
        int rows = size[0], columns = size[1], number = (int)all.matrices.size(), first = (int)all.patches.size();
        auto filled = [](int side) { return (side + TILE - 1) / TILE * TILE; };
        int side = filled(std::min(rows, columns)), inner = filled(std::max(rows, columns));
        bool is_tall = rows > columns;
        add(all.patches, number, (is_tall ? inner : side) / PATCH, (is_tall ? side : inner) / PATCH);
        add(all.square_tiles, number, side / TILE, side / TILE);
        add(all.tiles, number, side / TILE, inner / TILE);
        int parts = (int)all.patches.size() - first;
        all.matrices.push_back({length, rows, columns, side, inner, x, products, first, parts, is_tall, {0, 0}});
        length += (rows * columns + 63) / 64 * 64;
        x += side * inner;
        products += side * side;
    }
    uint32_t state = 1;
    auto random = [&](float scale) {
        state = state * 1664525u + 1013904223u;
        return scale * ((float)(state >> 8) / (1 << 23) - 1.0f);
    };
    for (int i = 0; i < length; i++) {
        all.values.push_back(random(1e-4f));
        all.gradients.push_back(random(1e-6f));
        all.momenta.push_back(random(1e-6f));
    }
    all.squares.resize(all.patches.size());
    all.x = unwritten(x);
    all.next = unwritten(x);
    all.gram = unwritten(products);
    all.factor = unwritten(products);
    std::vector<float> values = all.values, momenta = all.momenta;

    launch(momentum, all.patches.size());
    launch(start, all.patches.size());
    for (int iteration = 0; iteration < 5; iteration++) {
        launch(gram, all.square_tiles.size());
        launch(factor, all.square_tiles.size());
        launch(turn, all.tiles.size());
        std::swap(all.x, all.next);
    }
    launch(apply, all.patches.size());

    // Five products of rounded matrices, one after the other; the bounds of `check ops`.
    double bound = sizeof(T) == 2 ? 5e-2 : 1e-3;
    int failed = 0;
    for (const Matrix& m : all.matrices) {
        Numbers wanted = update(m, values, momenta);
        double scale = RATE * sqrt((double)std::max(m.rows, m.columns)), difference = 0, total = 0, moved = 0;
        for (size_t i = 0; i < wanted.size(); i++) {
            double found = ((double)values[m.start + i] - all.values[m.start + i]) / scale;
            difference += (found - wanted[i]) * (found - wanted[i]);
            total += wanted[i] * wanted[i];
            double d = (double)all.gradients[m.start + i] + (double)DECAY * values[m.start + i];
            moved = std::max(moved, std::abs(MOMENTUM * momenta[m.start + i] + d - all.momenta[m.start + i]));
        }
        double error = sqrt(difference / total);
        bool is_right = error < bound && moved < 1e-11;
        failed += !is_right;
        printf("%3d x %3d: %.2e of at most %.0e, momentum %.1e%s\n", m.rows, m.columns, error, bound, moved,
               is_right ? "" : " FAILED");
    }
    return failed ? 1 : 0;
}
