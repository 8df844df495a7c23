import { useQueryClient } from "@tanstack/react-query";
import { Ban, Trash2 } from "lucide-react";
import { useState } from "react";
import type { Client } from "../../../../src/client/connect.ts";
import { plural } from "../../parts/amounts.ts";
import { BulkBar } from "../../parts/bulk-bar.tsx";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { useStation } from "../../station/station.tsx";
import type { WorkItem, WorkKind } from "../../station/work-item.ts";
import { lookAtWorkAgain } from "../../station/work-queries.ts";
import { inTurns } from "../runs/in-turns.ts";

const isOver = ({ state }: WorkItem) => state === "done" || state === "failed" || state === "cancelled";

/** What can be done with all that are chosen. */
export function BulkWork({ chosen, onClear }: { chosen: readonly WorkItem[]; onClear(): void }) {
  const station = useStation();
  const queries = useQueryClient();
  const [asking, setAsking] = useState<"cancel" | "remove" | null>(null);
  const open = chosen.filter((item) => !isOver(item));
  const ended = chosen.filter(isOver);
  const act = async (items: readonly WorkItem[], verbs: ReturnType<typeof cancelling>, done: string) => {
    const failures = await inTurns(items, ({ kind, id }) => verbs[kind](id));
    say(`${items.length - failures.length} ${done}`);
    if (failures[0] !== undefined) sayProblem(failures[0]);
    lookAtWorkAgain(queries);
    onClear();
  };
  return (
    <BulkBar count={chosen.length} onClear={onClear}>
      <Button icon={<Ban />} disabled={open.length === 0} onClick={() => setAsking("cancel")}>
        Cancel {open.length > 0 && open.length}
      </Button>
      <Button look="danger" icon={<Trash2 />} disabled={ended.length === 0} onClick={() => setAsking("remove")}>
        Remove {ended.length > 0 && ended.length}
      </Button>
      {asking === "cancel" && (
        <Confirm
          title={`Cancel ${plural(open.length, "piece")} of work?`}
          action="Cancel them"
          onConfirm={() => act(open, cancelling(station), "cancelled")}
          onClose={() => setAsking(null)}
        >
          <p>Runs and commands that are at work for them are ended. What was written and what was pushed stays.</p>
        </Confirm>
      )}
      {asking === "remove" && (
        <Confirm
          title={`Remove ${plural(ended.length, "piece")} of work?`}
          action="Remove"
          onConfirm={() => act(ended, removing(station), "removed")}
          onClose={() => setAsking(null)}
        >
          <p>Their logs are forgotten for good. Their runs and sessions, with what they changed, stay.</p>
        </Confirm>
      )}
    </BulkBar>
  );
}

type Verbs = Readonly<Record<WorkKind, (id: string) => Promise<unknown>>>;

const cancelling = (station: Client): Verbs => ({
  workflow: (id) => station.workflows.cancel(id),
  spec: (id) => station.specs.cancel(id),
  ship: (id) => station.ships.cancel(id),
  merge: (id) => station.merges.cancel(id),
});

const removing = (station: Client): Verbs => ({
  workflow: (id) => station.workflows.remove(id),
  spec: (id) => station.specs.remove(id),
  ship: (id) => station.ships.remove(id),
  merge: (id) => station.merges.remove(id),
});
