import type { SandboxStats } from "../../../../src/contract/sandbox.ts";

/** Ten minutes, at one every two seconds. */
const SAMPLES_MAX = 300;

export type Sample = SandboxStats & { at: number };

/** At most so many, the oldest go; one that was there already is no new one. */
export function addSample(samples: readonly Sample[], next: Sample): readonly Sample[] {
  if ((samples.at(-1)?.at ?? 0) >= next.at) return samples;
  return [...samples.slice(-(SAMPLES_MAX - 1)), next];
}

type Values = readonly (number | null)[];

/** One row of values for each chart. Of processor time, what was used between two samples, in processors. */
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
