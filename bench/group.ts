import { benchCommandLine } from "./command-line.ts";
import { benchCommands } from "./commands.ts";
import { benchDiff } from "./diff.ts";
import { benchHeld } from "./held.ts";
import { benchNetwork } from "./network.ts";
import { openPlace } from "./place.ts";
import type { Row, Target } from "./report.ts";
import { benchRuns } from "./runs.ts";
import { benchStarts } from "./starts.ts";
import { benchStreams } from "./streams.ts";

/** Measures one group, in a process of its own: what one group does to the memory of its process must not weigh on the next. Prints JSON. */
const groups: Record<string, () => Promise<{ rows: Row[]; targets: Target[] }>> = {
  starts: () => inPlace(benchStarts),
  commands: () => inPlace(benchCommands),
  streams: () => inPlace(benchStreams),
  held: () => inPlace(benchHeld),
  "command-line": () => inPlace(benchCommandLine),
  runs: benchRuns,
  network: benchNetwork,
  diff: benchDiff,
};

async function inPlace<Result>(bench: (place: Awaited<ReturnType<typeof openPlace>>) => Promise<Result>): Promise<Result> {
  await using place = await openPlace();
  return await bench(place);
}

const bench = groups[process.argv[2] ?? ""];
if (!bench) throw new Error(`there is no group ${process.argv[2]}; there are: ${Object.keys(groups).join(", ")}`);
const { rows, targets } = await bench();
process.stdout.write(JSON.stringify({ rows, targets }));
