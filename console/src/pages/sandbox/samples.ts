import type { SandboxStats } from "../../../../src/contract/sandbox/sandbox.ts";

/** Ten minutes of samples, one every two seconds. */
const SAMPLES_MAX = 300;

export type Sample = SandboxStats & { at: number };

/** Adds a sample, unless it is a duplicate. Drops the oldest beyond the limit. */
export function addSample(samples: readonly Sample[], next: Sample): readonly Sample[] {
  if ((samples.at(-1)?.at ?? 0) >= next.at) return samples;
  return [...samples.slice(-(SAMPLES_MAX - 1)), next];
}

type Values = readonly (number | null)[];

/** Returns one series of values per chart. CPU time becomes the CPUs in use between two samples. */
export function seriesOf(samples: readonly Sample[]): { times: number[]; cpus: Values; memory: Values; processes: Values; disk: Values } {
  return {
    times: samples.map(({ at }) => at / 1000),
    cpus: samples.map(({ at, cpuMs }, index) => {
      const before = samples[index - 1];
      if (before === undefined || cpuMs === null || before.cpuMs === null || at <= before.at) return null;
      return Math.max(0, cpuMs - before.cpuMs) / (at - before.at);
    }),
    memory: samples.map(({ memoryBytes }) => memoryBytes),
    processes: samples.map(({ processes }) => processes),
    disk: samples.map(({ diskBytes }) => diskBytes),
  };
}
