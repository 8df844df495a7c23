import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus, X } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { useSearchParams } from "wouter";
import { ignore } from "../../../../../src/lib/failures.ts";
import { useStation } from "../../../data/station.tsx";
import { Button } from "../../../parts/button.tsx";
import { Empty } from "../../../parts/empty.tsx";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import { sayProblem } from "../../../parts/toasts.tsx";
import type { SandboxPart } from "../use-sandbox.ts";
import { nextNumber, numberOf, refOf } from "./shell-refs.ts";
import styles from "./terminals.module.css";

const TerminalView = lazy(() => import("./terminal-view.tsx"));
const SHELLS_MAX = 20;

interface Tab {
  ref: string;
  /** Opened here, and may not exist yet. */
  isNew: boolean;
}

/** Shells, each in a tab. They are processes of the sandbox, so a page that reloads finds them again. */
export default function Terminals({ sandbox }: SandboxPart) {
  const station = useStation();
  const queries = useQueryClient();
  const queryKey = ["shells", sandbox.id];
  const [params, setParams] = useSearchParams();
  const [opened, setOpened] = useState<readonly Tab[]>([]);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const running = useQuery({
    queryKey,
    queryFn: async ({ signal }) => shellsOf(await station.processes.list(sandbox.id, { signal })),
    // Data from an earlier visit is stale.
    gcTime: 0,
    enabled: sandbox.state === "running",
  });
  if (sandbox.state !== "running" && opened.length === 0) return <NotRunning state={sandbox.state} />;
  // A failed refetch does not hide open shells.
  if (running.data === undefined) {
    return running.error === null ? <Loading /> : <Problem error={running.error} onRetry={() => void running.refetch()} />;
  }
  const found = running.data.filter((ref) => !opened.some((each) => each.ref === ref)).map((ref) => ({ ref, isNew: false }));
  const openTabs = [...found, ...opened].filter(({ ref }) => !closed.has(ref));
  // Opens the first shell when the page finds no open one.
  const tabs = openTabs.length > 0 || closed.size > 0 ? openTabs : [{ ref: refOf(1), isNew: true }];
  const chosen = tabs.find(({ ref }) => ref === params.get("shell")) ?? tabs.at(-1);
  const choose = (ref: string) =>
    setParams(
      (before) => {
        const after = new URLSearchParams(before);
        after.set("shell", ref);
        return after;
      },
      { replace: true },
    );
  const open = () => {
    const ref = refOf(nextNumber([...tabs.map((tab) => tab.ref), ...closed]));
    setOpened([...tabs.filter((tab) => tab.isNew), { ref, isNew: true }]);
    choose(ref);
  };
  const close = (ref: string) => {
    setClosed(new Set([...closed, ref]));
    const ending = station.processes.kill(sandbox.id, ref).then(() => station.processes.forget(sandbox.id, ref));
    void ignore(ending, "the process has already ended; the list below shows the others")
      .then(() => queries.invalidateQueries({ queryKey }))
      .catch(sayProblem);
  };
  return (
    <div className={styles.terminals}>
      <div className={styles.strip} role="toolbar" aria-label="Shells">
        {tabs.map(({ ref }) => (
          <span key={ref} className={`${styles.tab} ${ref === chosen?.ref ? styles.chosen : ""}`}>
            <button type="button" aria-pressed={ref === chosen?.ref} onClick={() => choose(ref)}>
              Shell {numberOf(ref)}
            </button>
            <button type="button" className={styles.close} aria-label={`End shell ${numberOf(ref)}`} onClick={() => close(ref)}>
              <X aria-hidden="true" />
            </button>
          </span>
        ))}
        <Button look="plain" label="New shell" icon={<Plus />} disabled={tabs.length >= SHELLS_MAX} onClick={open} />
      </div>
      {tabs.length === 0 && <Empty title="No open shells" action={<Button onClick={open}>Open a shell</Button>} />}
      <Suspense fallback={<Loading />}>
        {tabs.map(({ ref, isNew }) => (
          <div key={ref} className={styles.place} hidden={ref !== chosen?.ref}>
            <TerminalView sandbox={sandbox.id} shell={ref} isNew={isNew} isShown={ref === chosen?.ref} onEnded={() => close(ref)} />
          </div>
        ))}
      </Suspense>
    </div>
  );
}

function NotRunning({ state }: { state: string }) {
  return (
    <Empty title={state === "paused" ? "The sandbox is paused" : `The sandbox is ${state}`}>
      {state === "paused" ? "Its processes are frozen. Resume it to continue in its shells." : "Shells need a running sandbox."}
    </Empty>
  );
}

function shellsOf(processes: readonly { ref: string | null; state: string }[]): string[] {
  return processes
    .flatMap(({ ref, state }) => (ref !== null && state === "running" && numberOf(ref) !== null ? [ref] : []))
    .sort((left, right) => (numberOf(left) ?? 0) - (numberOf(right) ?? 0));
}
