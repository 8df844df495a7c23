import type { Log } from "../../log/log.ts";
import { readPages } from "../../log/read-pages.ts";
import { runStream } from "../vocabulary/station-names.ts";

/** The events of a run that later rewinds took back. They stay in the log, and readers of the story skip them. */
export interface RewoundEvents {
  /** Adds what a rewind took back. Returns whether it was not known yet. */
  add(rewind: { seq: number; data: { toSeq: number } }): boolean;
  has(seq: number): boolean;
}

export function createRewoundEvents(): RewoundEvents {
  const known = new Set<number>();
  let ranges: { afterSeq: number; beforeSeq: number }[] = [];
  return {
    add({ seq, data: { toSeq } }) {
      if (known.has(seq)) return false;
      known.add(seq);
      // A later rewind to the same step or an earlier one covers this one, so there are at most as many as steps.
      ranges = [...ranges.filter(({ afterSeq, beforeSeq }) => afterSeq < toSeq || beforeSeq > seq), { afterSeq: toSeq, beforeSeq: seq }];
      return true;
    },
    has: (seq) => ranges.some(({ afterSeq, beforeSeq }) => seq > afterSeq && seq < beforeSeq),
  };
}

/** Reads which events of a run were rewound. */
export async function readRewoundEvents(log: Log, run: string): Promise<RewoundEvents> {
  const rewound = createRewoundEvents();
  for await (const page of readPages(log, runStream(run)))
    for (const { type, seq, data } of page) if (type === "run.rewound") rewound.add({ seq, data: data as { toSeq: number } });
  return rewound;
}
