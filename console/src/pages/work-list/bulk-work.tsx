import { useQueryClient } from "@tanstack/react-query";
import { Ban, Trash2 } from "lucide-react";
import { useState } from "react";
import { useStation } from "../../data/station.tsx";
import type { WorkItem } from "../../data/work-item.ts";
import { lookAtWorkAgain } from "../../data/work-queries.ts";
import { plural } from "../../parts/amounts.ts";
import { BulkBar } from "../../parts/bulk-bar.tsx";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { inTurns } from "../runs/in-turns.ts";

const isOver = ({ state }: WorkItem) => state === "done" || state === "failed" || state === "cancelled";

/** The actions on all selected jobs. */
export function BulkWork({ chosen, onClear }: { chosen: readonly WorkItem[]; onClear(): void }) {
  const station = useStation();
  const queries = useQueryClient();
  const [asking, setAsking] = useState<"cancel" | "remove" | null>(null);
  const open = chosen.filter((item) => !isOver(item));
  const ended = chosen.filter(isOver);
  const act = async (items: readonly WorkItem[], verb: "cancel" | "remove", done: string) => {
    const failures = await inTurns(items, ({ kind, id }) => station[`${kind}s`][verb](id));
    say(`${plural(items.length - failures.length, "job")} ${done}.`);
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
          title={`Cancel ${plural(open.length, "job")}?`}
          action="Cancel them"
          onConfirm={() => act(open, "cancel", "cancelled")}
          onClose={() => setAsking(null)}
        >
          <p>Stops their runs and commands. What they wrote and pushed stays.</p>
        </Confirm>
      )}
      {asking === "remove" && (
        <Confirm
          title={`Remove ${plural(ended.length, "job")}?`}
          action="Remove"
          onConfirm={() => act(ended, "remove", "removed")}
          onClose={() => setAsking(null)}
        >
          <p>Deletes their logs for good. Their runs, sessions and changes stay.</p>
        </Confirm>
      )}
    </BulkBar>
  );
}
