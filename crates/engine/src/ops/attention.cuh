// What both ways of computing attention share: where a head's numbers lie in qkv (n, tokens, 3 d). Put before attention.cu
// and attention_tensor.cu.

#define INFINITE __int_as_float(0x7f800000)

struct Place {
  int n, head;      // sample and head
  int width;        // numbers of a token in y
  const T* q;       // first query of the head; keys and values follow at `width`
  const float* b;   // bias of the head's queries, or none
};

__device__ __forceinline__ Place place_of(int index, const T* qkv, const float* bias, int tokens, int heads) {
  Place p;
  p.head = index % heads;
  p.n = index / heads;
  p.width = heads * SIZE;
  p.q = qkv + (size_t)p.n * tokens * 3 * p.width + p.head * SIZE;
  p.b = bias ? bias + p.head * SIZE : nullptr;
  return p;
}
