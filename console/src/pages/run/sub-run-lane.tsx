import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { keys, useRun } from "../../data/queries.ts";
import { useStation } from "../../data/station.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import { RunStatus } from "../runs/run-status.tsx";
import { ItemView } from "./item-view.tsx";
import styles from "./items.module.css";
import type { ToolItem } from "./timeline-item.ts";
import { useTimeline } from "./use-timeline.ts";

const ITEMS_SHOWN = 60;
const LOOK_AGAIN_MS = 2_000;

/** Shows the latest items of a sub-run inside its parent's timeline. */
export function renderSubRun(parent: string, { call, subRun }: ToolItem) {
  return <SubRunLane parent={parent} call={call} run={subRun} />;
}

function SubRunLane({ parent, call, run }: { parent: string; call: string; run: string | null }) {
  const station = useStation();
  const { data } = useQuery({
    queryKey: [...keys.run(parent), "sub-runs"],
    queryFn: ({ signal }) => station.runs.list({ parent, limit: 200 }, { signal }),
    enabled: run === null,
    refetchInterval: ({ state }) => (state.data?.runs.some((each) => each.parent?.call === call) ? false : LOOK_AGAIN_MS),
  });
  const id = run ?? data?.runs.find((each) => each.parent?.call === call)?.run;
  return id === undefined ? null : <Lane run={id} />;
}

function Lane({ run }: { run: string }) {
  const { data: view } = useRun(run);
  const { timeline } = useTimeline(run);
  const items = timeline.items.filter(({ isQuiet, kind }) => isQuiet !== true && kind !== "step");
  const hidden = items.length - ITEMS_SHOWN;
  return (
    <section className={styles.lane}>
      <div className={styles.laneHead}>
        {view !== undefined && <RunStatus view={view} />}
        <Link href={`/runs/${run}`} className="link">
          {visibleText(view?.agent ?? run)}
        </Link>
        {hidden > 0 && <span className={styles.quiet}>{hidden} earlier items on its own page</span>}
      </div>
      {items.slice(-ITEMS_SHOWN).map((item) => (
        <ItemView key={item.seq} item={item} run={run} isOpen={view?.status !== "ended"} renderLane={renderSubRun} />
      ))}
    </section>
  );
}
