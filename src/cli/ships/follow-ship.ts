import type { ShipStatus, ShipView } from "../../contract/ship-verbs.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { eventText } from "./ship-text.ts";

const WATCH_SECONDS = 30;
/** Somebody has to say something, or there is nothing left to say. */
const settled: readonly ShipStatus[] = ["open", "blocked", "merged", "cancelled"];

export const isSettled = ({ status }: Pick<ShipView, "status">): boolean => settled.includes(status);

/** Tells what happens to a ship until it is settled, and resolves with it as it is then. */
export async function followShip(
  context: Pick<CliContext, "station" | "stderr">,
  begun: ShipView,
  { isQuiet, until = settled }: { isQuiet: boolean; until?: readonly ShipStatus[] },
): Promise<ShipView> {
  const { ships } = context.station;
  let told = 0;
  let ship = await ships.get(begun.id);
  for (;;) {
    if (!isQuiet) for (const event of ship.history.slice(told)) await context.stderr.print(line`caisson: ${eventText(event)}`);
    told = ship.history.length;
    if (until.includes(ship.status) || ship.status === "blocked") {
      const { history: _, ...view } = ship;
      return view;
    }
    ship = await ships.watch(ship.id, { afterSeq: ship.seq, seconds: WATCH_SECONDS });
  }
}
