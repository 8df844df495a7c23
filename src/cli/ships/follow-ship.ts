import type { ShipEvent, ShipLogEvent } from "../../contract/ship-event.ts";
import type { ShipStatus, ShipView } from "../../contract/ship-verbs.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { eventText } from "./ship-text.ts";

/** Somebody has to say something, or there is nothing left to say. */
const settled: readonly ShipStatus[] = ["open", "blocked", "paused", "merged", "cancelled"];

export const isSettled = ({ status }: Pick<ShipView, "status">): boolean => settled.includes(status);

/** Tells what happens to a ship until it is settled, and resolves with it as it is then. */
export async function followShip(
  context: Pick<CliContext, "station" | "stderr">,
  begun: ShipView,
  { isQuiet, until = settled }: { isQuiet: boolean; until?: readonly ShipStatus[] },
): Promise<ShipView> {
  const { ships } = context.station;
  const look = async (): Promise<ShipView> => {
    const { history: _, ...view } = await ships.get(begun.id);
    return view;
  };
  let ship = await look();
  const isOver = () => until.includes(ship.status) || ship.status === "blocked";
  for await (const event of ships.events(begun.id, { follow: true })) {
    if (!isQuiet && isOwn(event)) await context.stderr.print(line`caisson: ${eventText(event)}`);
    // What it has come to is looked at where it may be news: with the last event that was known, and each after it.
    if (event.seq < ship.seq) continue;
    if (event.seq > ship.seq) ship = await look();
    if (event.seq === ship.seq && isOver()) break;
  }
  return ship;
}

const isOwn = (event: ShipLogEvent): event is ShipEvent => event.type.startsWith("ship.");
