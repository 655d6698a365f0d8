// Functions that kernels get, each where one needs it.  They give arithmetic the meaning that it has
// on CPUs (docs/cpu.md).  Every function is called dv_ and its name.

// Parts of words.  A byte or half of a word is one thread's: a store changes only its bits,
// whatever other threads do to the rest at the same time.

fn dv_load8_words(at: i32) -> u32 { return (words[at >> 2] >> (8u * u32(at & 3))) & 0xffu; }

fn dv_load16_words(at: i32) -> u32 { return (words[at >> 1] >> (16u * u32(at & 1))) & 0xffffu; }

fn dv_load8_shared_words(at: i32) -> u32 {
  return (atomicLoad(&shared_words[at >> 2]) >> (8u * u32(at & 3))) & 0xffu;
}

fn dv_load16_shared_words(at: i32) -> u32 {
  return (atomicLoad(&shared_words[at >> 1]) >> (16u * u32(at & 1))) & 0xffffu;
}

fn dv_store8(at: i32, value: u32) {
  let shift = 8u * u32(at & 3);
  let old = atomicLoad(&shared_words[at >> 2]);
  atomicXor(&shared_words[at >> 2], (old ^ (value << shift)) & (0xffu << shift));
}

fn dv_store16(at: i32, value: u32) {
  let shift = 16u * u32(at & 1);
  let old = atomicLoad(&shared_words[at >> 1]);
  atomicXor(&shared_words[at >> 1], (old ^ (value << shift)) & (0xffffu << shift));
}

fn dv_store64_words(at: i32, value: vec2<u32>) {
  words[at] = value.x; words[at + 1] = value.y;
}

fn dv_store64_shared_words(at: i32, value: vec2<u32>) {
  atomicStore(&shared_words[at], value.x); atomicStore(&shared_words[at + 1], value.y);
}

// Floats.  Tests look at bits, since implementations may assume that nothing is infinite or no
// number; float gives such values, which literals cannot have.

fn dv_float(bits: u32) -> f32 { return bitcast<f32>(bits); }

fn dv_isnan(a: f32) -> bool { return (bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u; }

fn dv_isinf(a: f32) -> bool { return (bitcast<u32>(a) & 0x7fffffffu) == 0x7f800000u; }

fn dv_from_float16(a: u32) -> f32 {
  let bits = a & 0x7fffu; let sign = (a & 0x8000u) << 16u;
  if (bits >= 0x7c00u) {
    return bitcast<f32>(sign | 0x7f800000u | ((bits & 0x3ffu) << 13u));
  }
  if (bits >= 0x0400u) { return bitcast<f32>(sign | ((bits << 13u) + 0x38000000u)); }
  return bitcast<f32>(sign | bitcast<u32>(f32(bits) * 0x1p-24f));
}

fn dv_to_float16(a: f32) -> u32 {
  let bits = bitcast<u32>(a); let sign = (bits >> 16u) & 0x8000u;
  let rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) { return sign | 0x7e00u; }
  if (rest >= 0x477ff000u) { return sign | 0x7c00u; }
  if (rest >= 0x38800000u) {
    let shifted = rest - 0x38000000u;
    return sign | ((shifted + 0xfffu + ((shifted >> 13u) & 1u)) >> 13u);
  }
  return sign | u32(round(bitcast<f32>(rest) * 0x1p24f));
}

fn dv_from_bfloat16(a: u32) -> f32 { return bitcast<f32>(a << 16u); }

fn dv_to_bfloat16(a: f32) -> u32 {
  let bits = bitcast<u32>(a);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}

// What no integer can hold becomes the lowest one.

fn dv_i32_of_f32(a: f32) -> i32 {
  return select(i32(-2147483648), i32(a), a >= -0x1p31f && a < 0x1p31f);
}

fn dv_min_f32(a: f32, b: f32) -> f32 { return select(b, a, dv_isnan(a) || a < b); }

fn dv_max_f32(a: f32, b: f32) -> f32 { return select(b, a, dv_isnan(a) || a > b); }

// The sine of x and so many quarters of a turn: what is left of x after the nearest multiple of
// pi / 2, which is subtracted in three parts, goes into a Taylor series.

fn dv_turned(x: f32, quarters: i32) -> f32 {
  let n = round(x * 0.636619772f);
  var r = fma(-n, 1.5703125f, x);
  r = fma(-n, 4.83751296997070312e-4f, r);
  r = fma(-n, 7.54978995489188e-8f, r);
  let s = r * r;
  let a = 8.33333333e-3f + s * (-1.98412698e-4f + s * 2.75573192e-6f);
  let sine = r * (1.0f + s * (-1.66666667e-1f + s * a));
  let b = -1.38888889e-3f + s * (2.48015873e-5f + s * -2.75573192e-7f);
  let cosine = 1.0f + s * (-0.5f + s * (4.16666667e-2f + s * b));
  let turn = i32(n) + quarters;
  let value = select(sine, cosine, (turn & 1) == 1);
  return select(value, -value, (turn & 2) == 2);
}

fn dv_sin(x: f32) -> f32 { return dv_turned(x, 0); }

fn dv_cos(x: f32) -> f32 { return dv_turned(x, 1); }

fn dv_tan(x: f32) -> f32 { return dv_turned(x, 0) / dv_turned(x, 1); }

fn dv_with_sign(a: f32, b: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(a) & 0x7fffffffu) | (bitcast<u32>(b) & 0x80000000u));
}

// Remainders: with the sign of a, and with that of b.

fn dv_rem_f32(a: f32, b: f32) -> f32 {
  let size = abs(b); let most = abs(a);
  if (dv_isinf(b) && !dv_isinf(a)) { return a; }
  var r = fma(-trunc(most / size), size, most);
  r = select(r, r + size, r < 0.0f); r = select(r, r - size, r >= size);
  return dv_with_sign(select(r, dv_float(0x7fc00000u), dv_isinf(a)), a);
}

fn dv_mod_f32(a: f32, b: f32) -> f32 {
  let r = dv_rem_f32(a, b);
  if (r == 0.0f) { return dv_with_sign(r, b); }
  return select(r, r + b, (r < 0.0f) != (b < 0.0f));
}

// By squares where the power is a small integer.

fn dv_pow_f32(a: f32, b: f32) -> f32 {
  if (b == 0.0f || a == 1.0f) { return 1.0f; }
  let whole = round(b) == b; let half = b * 0.5f;
  let odd = whole && round(half) != half;
  let size = abs(a);
  var found = 1.0f;
  if (whole && abs(b) <= 64.0f) {
    var rest = u32(abs(b)); var x = size;
    while (rest != 0u) {
      if ((rest & 1u) == 1u) { found *= x; }
      x *= x; rest = rest >> 1u;
    }
    if (b < 0.0f) { found = 1.0f / found; }
  } else if (b == 0.5f) {
    found = sqrt(size);
  } else {
    found = pow(size, b);
  }
  if (a < 0.0f && !whole) { return dv_float(0x7fc00000u); }
  return select(found, -found, odd && (bitcast<u32>(a) >> 31u) == 1u);
}

// Integers of 32 bits; those of 8 and 16 are computed as these.  Division by 0 gives 0, shifts by
// all bits give 0 or the sign.

fn dv_min_i32(a: i32, b: i32) -> i32 { return min(a, b); }

fn dv_max_i32(a: i32, b: i32) -> i32 { return max(a, b); }

fn dv_min_u32(a: u32, b: u32) -> u32 { return min(a, b); }

fn dv_max_u32(a: u32, b: u32) -> u32 { return max(a, b); }

fn dv_shl_i32(a: i32, b: i32) -> i32 { return select(0, a << (u32(b) & 31u), u32(b) < 32u); }

fn dv_shl_u32(a: u32, b: u32) -> u32 { return select(0u, a << (b & 31u), b < 32u); }

fn dv_shr_i32(a: i32, b: i32) -> i32 { return a >> min(u32(b), 31u); }

fn dv_shr_u32(a: u32, b: u32) -> u32 { return select(0u, a >> (b & 31u), b < 32u); }

fn dv_div_i32(a: i32, b: i32) -> i32 {
  if (b == 0) { return 0; }
  if (b == -1) { return -a; }
  return a / b;
}

fn dv_rem_i32(a: i32, b: i32) -> i32 {
  if (b == 0 || b == -1) { return 0; }
  return a % b;
}

fn dv_floordiv_i32(a: i32, b: i32) -> i32 {
  if (b == 0) { return 0; }
  if (b == -1) { return -a; }
  let q = a / b;
  return select(q, q - 1, a % b != 0 && (a ^ b) < 0);
}

fn dv_mod_i32(a: i32, b: i32) -> i32 {
  if (b == 0 || b == -1) { return 0; }
  let r = a % b;
  return select(r, r + b, r != 0 && (r ^ b) < 0);
}

fn dv_pow_u32(a: u32, b: u32) -> u32 {
  var r = 1u; var x = a; var rest = b;
  while (rest != 0u) { if ((rest & 1u) == 1u) { r *= x; } x *= x; rest = rest >> 1u; }
  return r;
}

fn dv_div_u32(a: u32, b: u32) -> u32 { if (b == 0u) { return 0u; } return a / b; }

fn dv_floordiv_u32(a: u32, b: u32) -> u32 { if (b == 0u) { return 0u; } return a / b; }

fn dv_rem_u32(a: u32, b: u32) -> u32 { if (b == 0u) { return 0u; } return a % b; }

fn dv_mod_u32(a: u32, b: u32) -> u32 { if (b == 0u) { return 0u; } return a % b; }

fn dv_pow_i32(a: i32, b: i32) -> i32 {
  if (b < 0) { return select(0, select(1, a, (b & 1) == 1), a == 1 || a == -1); }
  return i32(dv_pow_u32(u32(a), u32(b)));
}

// Integers of 64 bits, the low word first.

fn dv_wide_of_i32(a: i32) -> vec2<u32> { return vec2<u32>(u32(a), u32(a >> 31u)); }

fn dv_add_wide(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn dv_sub_wide(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn dv_mul_wide(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let p = (a.x & 0xffffu) * (b.x & 0xffffu);
  let q = (a.x >> 16u) * (b.x & 0xffffu);
  let r = (a.x & 0xffffu) * (b.x >> 16u);
  let middle = (p >> 16u) + (q & 0xffffu) + (r & 0xffffu);
  let high = (a.x >> 16u) * (b.x >> 16u) + (q >> 16u) + (r >> 16u) + (middle >> 16u);
  return vec2<u32>(a.x * b.x, high + a.x * b.y + a.y * b.x);
}

fn dv_and_wide(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return a & b; }

fn dv_or_wide(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return a | b; }

fn dv_xor_wide(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return a ^ b; }

fn dv_eq_wide(a: vec2<u32>, b: vec2<u32>) -> bool { return all(a == b); }

fn dv_ne_wide(a: vec2<u32>, b: vec2<u32>) -> bool { return any(a != b); }

fn dv_lt_uint64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return a.y < b.y || (a.y == b.y && a.x < b.x);
}

fn dv_lt_int64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return i32(a.y) < i32(b.y) || (a.y == b.y && a.x < b.x);
}

fn dv_shl_wide(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (b.y != 0u || b.x >= 64u) { return vec2<u32>(0u, 0u); }
  if (b.x >= 32u) { return vec2<u32>(0u, a.x << (b.x - 32u)); }
  if (b.x == 0u) { return a; }
  return vec2<u32>(a.x << b.x, (a.y << b.x) | (a.x >> (32u - b.x)));
}

fn dv_shr_uint64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (b.y != 0u || b.x >= 64u) { return vec2<u32>(0u, 0u); }
  if (b.x >= 32u) { return vec2<u32>(a.y >> (b.x - 32u), 0u); }
  if (b.x == 0u) { return a; }
  return vec2<u32>((a.x >> b.x) | (a.y << (32u - b.x)), a.y >> b.x);
}

fn dv_shr_int64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let sign = u32(i32(a.y) >> 31u);
  if (b.y != 0u || b.x >= 64u) { return vec2<u32>(sign, sign); }
  if (b.x >= 32u) { return vec2<u32>(u32(i32(a.y) >> (b.x - 32u)), sign); }
  if (b.x == 0u) { return a; }
  return vec2<u32>((a.x >> b.x) | (a.y << (32u - b.x)), u32(i32(a.y) >> b.x));
}

// Quotient and remainder, by long division.

fn dv_parts(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  var q = vec2<u32>(0u, 0u); var r = q;
  if (all(b == q)) { return vec4<u32>(q, q); }
  for (var i = 63; i >= 0; i--) {
    let over = r.y >> 31u;
    let bit = select(a.x >> u32(i & 31), a.y >> u32(i & 31), i >= 32) & 1u;
    r = vec2<u32>((r.x << 1u) | bit, (r.y << 1u) | (r.x >> 31u));
    q = vec2<u32>(q.x << 1u, (q.y << 1u) | (q.x >> 31u));
    if (over == 1u || !dv_lt_uint64(r, b)) { r = dv_sub_wide(r, b); q.x |= 1u; }
  }
  return vec4<u32>(q, r);
}

fn dv_div_uint64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return dv_parts(a, b).xy; }

fn dv_floordiv_uint64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return dv_parts(a, b).xy; }

fn dv_rem_uint64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return dv_parts(a, b).zw; }

fn dv_mod_uint64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return dv_parts(a, b).zw; }

fn dv_signed(a: vec2<u32>, negative: bool) -> vec2<u32> {
  return select(a, dv_sub_wide(vec2<u32>(0u, 0u), a), negative);
}

fn dv_size(a: vec2<u32>) -> vec2<u32> { return dv_signed(a, i32(a.y) < 0); }

fn dv_div_int64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return dv_signed(dv_parts(dv_size(a), dv_size(b)).xy, i32(a.y ^ b.y) < 0);
}

fn dv_rem_int64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return dv_signed(dv_parts(dv_size(a), dv_size(b)).zw, i32(a.y) < 0);
}

fn dv_floordiv_int64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let q = dv_div_int64(a, b);
  let apart = any(dv_rem_int64(a, b) != vec2<u32>(0u, 0u)) && i32(a.y ^ b.y) < 0;
  return select(q, dv_sub_wide(q, vec2<u32>(1u, 0u)), apart);
}

fn dv_mod_int64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let r = dv_rem_int64(a, b);
  let apart = any(r != vec2<u32>(0u, 0u)) && i32(r.y ^ b.y) < 0;
  return select(r, dv_add_wide(r, b), apart);
}

fn dv_pow_uint64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  var r = vec2<u32>(1u, 0u); var x = a; var rest = b;
  while (any(rest != vec2<u32>(0u, 0u))) {
    if ((rest.x & 1u) == 1u) { r = dv_mul_wide(r, x); }
    x = dv_mul_wide(x, x); rest = dv_shr_uint64(rest, vec2<u32>(1u, 0u));
  }
  return r;
}

fn dv_pow_int64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  if (i32(b.y) >= 0) { return dv_pow_uint64(a, b); }
  if (a.x == 1u && a.y == 0u) { return a; }
  if (a.x == 0xffffffffu && a.y == a.x) {
    return select(vec2<u32>(1u, 0u), a, (b.x & 1u) == 1u);
  }
  return vec2<u32>(0u, 0u);
}

// Conversions of floats.

fn dv_uint64_of_size(a: f32) -> vec2<u32> {
  let high = floor(a * 0x1p-32f);
  return vec2<u32>(u32(fma(-high, 0x1p32f, a)), u32(high));
}

fn dv_int64_of_f32(a: f32) -> vec2<u32> {
  if (!(a >= -0x1p63f && a < 0x1p63f)) { return vec2<u32>(0u, 0x80000000u); }
  return dv_signed(dv_uint64_of_size(trunc(abs(a))), a < 0.0f);
}

fn dv_uint64_of_f32(a: f32) -> vec2<u32> {
  if (a < 0x1p63f) { return dv_int64_of_f32(a); }
  if (a < 0x1p64f) { return dv_uint64_of_size(trunc(a)); }
  return vec2<u32>(0u, 0x80000000u);
}

fn dv_f32_of_uint64(a: vec2<u32>) -> f32 {
  if (a.y == 0u) { return f32(a.x); }
  let shift = countLeadingZeros(a.y);
  let whole = dv_shl_wide(a, vec2<u32>(shift, 0u));
  return ldexp(f32(whole.y | select(0u, 1u, whole.x != 0u)), 32 - i32(shift));
}

fn dv_f32_of_int64(a: vec2<u32>) -> f32 {
  let size = dv_f32_of_uint64(dv_size(a));
  return select(size, -size, i32(a.y) < 0);
}

fn dv_min_int64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(b, a, dv_lt_int64(a, b)); }

fn dv_max_int64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> { return select(a, b, dv_lt_int64(a, b)); }

fn dv_le_int64(a: vec2<u32>, b: vec2<u32>) -> bool { return !dv_lt_int64(b, a); }

fn dv_min_uint64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(b, a, dv_lt_uint64(a, b));
}

fn dv_max_uint64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, dv_lt_uint64(a, b));
}

fn dv_le_uint64(a: vec2<u32>, b: vec2<u32>) -> bool { return !dv_lt_uint64(b, a); }
