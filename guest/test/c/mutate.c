/*
 * Drives a fuzzer without libFuzzer: mutates the vectors by a fixed pseudo-random sequence. Accepts libFuzzer's -runs,
 * -seed and -max_total_time; ignores its other options.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

enum { INPUT_MAX = 8192, SEEDS_MAX = 256 };

static struct {
  uint8_t bytes[1024];
  size_t length;
} seeds[SEEDS_MAX];
static size_t seed_count;
static uint64_t state = 1;

static uint32_t draw(uint32_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 16) % below;
}

static void load(const char *path) {
  FILE *file = fopen(path, "r");
  static char line[4096];
  while (file && seed_count < SEEDS_MAX && fgets(line, sizeof line, file)) {
    char *tab = strchr(line, '\t');
    unsigned byte;
    if (tab == NULL) continue;
    for (char *at = tab + 1; sscanf(at, "%2x", &byte) == 1 && seeds[seed_count].length < sizeof seeds->bytes; at += 2)
      seeds[seed_count].bytes[seeds[seed_count].length++] = (uint8_t)byte;
    seed_count++;
  }
  if (file) fclose(file);
}

int main(int argc, char **argv) {
  long runs = 1000000, seconds = 60;
  for (int i = 1; i < argc; i++) {
    sscanf(argv[i], "-runs=%ld", &runs);
    sscanf(argv[i], "-max_total_time=%ld", &seconds);
    long seed;
    if (sscanf(argv[i], "-seed=%ld", &seed) == 1) state = (uint64_t)seed * 2654435761u + 1;
  }
  if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&argc, &argv);
  load("vectors/frames.txt");
  if (seed_count == 0) seed_count = 1;
  time_t end = time(NULL) + seconds;
  long run = 0;
  for (; run < runs && (run % 1024 != 0 || time(NULL) < end); run++) {
    static uint8_t input[INPUT_MAX];
    size_t length = 0;
    for (uint32_t frames = 1 + draw(4); frames > 0; frames--) {
      size_t pick = draw((uint32_t)seed_count);
      if (length + seeds[pick].length > sizeof input) break;
      memcpy(input + length, seeds[pick].bytes, seeds[pick].length);
      length += seeds[pick].length;
    }
    for (uint32_t changes = draw(6); changes > 0 && length > 0; changes--) {
      static const uint8_t telling[] = {0, 1, 0x7f, 0x80, 0xff, 4};
      input[draw((uint32_t)length)] = draw(2) ? telling[draw(sizeof telling)] : (uint8_t)draw(256);
    }
    if (draw(4) == 0 && length > 0) length = draw((uint32_t)length);
    LLVMFuzzerTestOneInput(input, length);
  }
  printf("%ld inputs\n", run);
  return 0;
}
