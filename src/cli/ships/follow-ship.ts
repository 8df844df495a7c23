import type { ShipEvent, ShipLogEvent } from "../../contract/ship/ship-event.ts";
import type { ShipStatus, ShipView } from "../../contract/ship/ship-verbs.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { eventText } from "./ship-text.ts";

/** The states in which a ship needs a person or has finished. */
const settled: readonly ShipStatus[] = ["open", "blocked", "paused", "merged", "cancelled"];

export const isSettled = ({ status }: Pick<ShipView, "status">): boolean => settled.includes(status);

/** Prints a ship's events until it is settled, and resolves with its final view. */
export async function followShip(
  context: Pick<CliContext, "station" | "stderr">,
  initialShip: ShipView,
  { isQuiet, until = settled }: { isQuiet: boolean; until?: readonly ShipStatus[] },
): Promise<ShipView> {
  const { ships } = context.station;
  const look = async (): Promise<ShipView> => {
    const { history: _, ...view } = await ships.get(initialShip.id);
    return view;
  };
  let ship = await look();
  const isOver = () => until.includes(ship.status) || ship.status === "blocked";
  for await (const event of ships.events(initialShip.id, { follow: true })) {
    if (!isQuiet && isOwn(event)) await context.stderr.print(line`caisson: ${eventText(event)}`);
    // Events up to the known state are old news. From there on, the state is read again after each event.
    if (event.seq < ship.seq) continue;
    if (event.seq > ship.seq) ship = await look();
    if (event.seq === ship.seq && isOver()) break;
  }
  return ship;
}

const isOwn = (event: ShipLogEvent): event is ShipEvent => event.type.startsWith("ship.");
