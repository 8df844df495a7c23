import { useQuery, useQueryClient } from "@tanstack/react-query";
import { CircleStop, Skull } from "lucide-react";
import { useState } from "react";
import type { Client } from "../../../../src/client/connect.ts";
import { CaissonError } from "../../../../src/contract/error/error.ts";
import { useStation } from "../../data/station.tsx";
import { bytes } from "../../parts/amounts.ts";
import { Button } from "../../parts/button.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { Empty } from "../../parts/empty.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Problem } from "../../parts/problem.tsx";
import { duration } from "../../parts/time.tsx";
import { sayProblem } from "../../parts/toasts.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import styles from "./tables.module.css";
import type { SandboxPart } from "./use-sandbox.ts";

type Entry = Awaited<ReturnType<Client["processes"]["list"]>>[number];
const LOOK_MS = 2_000;
const COMMAND_SHOWN_MAX = 400;

export default function Processes({ sandbox }: SandboxPart) {
  const station = useStation();
  const queries = useQueryClient();
  const [entryToKill, setEntryToKill] = useState<Entry | null>(null);
  const queryKey = ["processes", sandbox.id];
  const { data, error, refetch } = useQuery({
    queryKey,
    queryFn: ({ signal }) => station.processes.list(sandbox.id, { signal }),
    refetchInterval: LOOK_MS,
    enabled: sandbox.state === "running",
  });
  if (sandbox.state !== "running") return <Empty title={`The sandbox is ${sandbox.state}`} />;
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading />;
  const signal = async (entry: Entry, name: "TERM" | "KILL") => {
    await signalProcess(station, { sandbox: sandbox.id, entry, name });
    await queries.invalidateQueries({ queryKey });
  };
  const running = data.filter(({ state }) => state === "running");
  if (running.length === 0) return <Empty title="No processes">Processes that a terminal or an agent starts appear here.</Empty>;
  return (
    <>
      <table className={styles.table}>
        <thead>
          <tr>
            <th className={styles.number}>PID</th>
            <th>Command</th>
            <th className={`${styles.number} ${styles.wide}`}>User</th>
            <th className={styles.number}>Memory</th>
            <th className={`${styles.number} ${styles.wide}`}>CPU time</th>
            <th>
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {running.map((entry) => (
            <tr key={entry.pid}>
              <td className={`${styles.number} mono`}>{entry.pid}</td>
              <td className={`${styles.long} mono`} title={visibleText(entry.command.slice(0, COMMAND_SHOWN_MAX))}>
                {visibleText(entry.command.slice(0, COMMAND_SHOWN_MAX))}
              </td>
              <td className={`${styles.number} ${styles.wide}`}>{entry.uid === 0 ? "root" : entry.uid}</td>
              <td className={styles.number}>{bytes(entry.memoryBytes)}</td>
              <td className={`${styles.number} ${styles.wide}`}>{duration(entry.cpuMs)}</td>
              <td className={styles.actions}>
                <Button
                  look="plain"
                  label={`Terminate process ${entry.pid}`}
                  icon={<CircleStop />}
                  onClick={() => void signal(entry, "TERM").catch(sayProblem)}
                />
                <Button look="plain" label={`Kill process ${entry.pid}`} icon={<Skull />} onClick={() => setEntryToKill(entry)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {entryToKill !== null && (
        <Confirm
          title={`Kill process ${entryToKill.pid}?`}
          action="Kill"
          onConfirm={() => signal(entryToKill, "KILL")}
          onClose={() => setEntryToKill(null)}
        >
          <p>
            <code>{visibleText(entryToKill.command.slice(0, COMMAND_SHOWN_MAX))}</code>
          </p>
          <p>{entryToKill.ref === null ? "It gets no chance to clean up." : "It ends immediately, with every process it started."}</p>
        </Confirm>
      )}
    </>
  );
}

/** The station has no ref for a process that another process started, so a shell inside sends the signal. */
async function signalProcess(
  station: Client,
  { sandbox, entry: { ref, pid, uid }, name }: { sandbox: string; entry: Entry; name: "TERM" | "KILL" },
): Promise<void> {
  if (ref !== null && name === "KILL") return void (await station.processes.kill(sandbox, ref));
  if (ref !== null) return void (await station.processes.signal(sandbox, ref, { signal: `SIG${name}` }));
  const argv = ["/bin/sh", "-c", 'kill -s "$1" "$2"', "sh", name, String(pid)];
  const { ended, stderr } = await station.sandboxes.exec(sandbox, { argv, ...(uid === 0 && { user: "root" }) });
  if (ended.kind === "exited" && ended.exitCode === 0) return;
  throw new CaissonError("conflict", `cannot signal process ${pid}: ${stderr.text.trim().slice(0, COMMAND_SHOWN_MAX) || ended.kind}`);
}
