import { expect, test } from "vitest";
import { addSample, type Sample, seriesOf } from "./samples.ts";

const sample = (at: number, cpuMs: number | null): Sample => ({
  at,
  cpuMs,
  memoryBytes: 10,
  memoryKills: 0,
  processes: 2,
  diskBytes: null,
  source: "host",
});

test("converts CPU time to CPUs in use", () => {
  const { times, cpus, disk } = seriesOf([sample(1000, 100), sample(3000, 1100), sample(5000, null), sample(7000, 50)]);
  expect(times).toEqual([1, 3, 5, 7]);
  expect(cpus).toEqual([null, 0.5, null, null]);
  expect(disk).toEqual([null, null, null, null]);
  // A counter that restarted does not yield negative usage.
  expect(seriesOf([sample(1000, 500), sample(2000, 0)]).cpus).toEqual([null, 0]);
});

test("keeps a bounded number of samples, each once", () => {
  let samples: readonly Sample[] = [];
  for (let at = 1; at <= 400; at += 1) samples = addSample(samples, sample(at, 0));
  expect(samples.length).toBe(300);
  expect(samples[0]?.at).toBe(101);
  expect(addSample(samples, sample(400, 0))).toBe(samples);
});
