import { useQuery } from "@tanstack/react-query";
import { CircleHelp } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import type { ConflictedFile } from "../../../../src/contract/merge/merge-event.ts";
import type { MergeView } from "../../../../src/contract/merge/merge-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { plural } from "../../parts/amounts.ts";
import { Button } from "../../parts/button.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Problem } from "../../parts/problem.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { Value } from "../../parts/value.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import styles from "./merge.module.css";

const kinds: Readonly<Record<ConflictedFile["kind"], string>> = {
  content: "changed by both",
  added_twice: "added by both",
  changed_and_removed: "changed by one, removed by the other",
  not_text: "changed by both, not text",
  renamed: "renamed by one",
};
type Side = "merged" | "theirs";

/**
 * Shows the files in conflict. If a person must resolve them, offers to choose a version of each file or to report them
 * as resolved.
 */
export function Conflict({ view, onDone }: { view: MergeView; onDone(view: MergeView): void }) {
  const station = useStation();
  const [takenSides, setTakenSides] = useState<Readonly<Record<string, Side>>>({});
  const [looked, setLooked] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const { conflict } = view;
  if (conflict === null || view.finish !== null) return null;
  const isWaiting = view.waits?.person != null;
  const take = Object.entries(takenSides).map(([path, side]) => ({ path, side }));
  const resolve = async (request: { take?: typeof take; agent?: boolean }, done: string) => {
    setBusy(true);
    try {
      onDone(await station.merges.resolve(view.id, request));
      say(done);
      setTakenSides({});
    } catch (error) {
      sayProblem(error);
    } finally {
      setBusy(false);
    }
  };
  const left = conflict.files.length - take.length;
  return (
    <section className={isWaiting ? styles.asked : styles.conflict} aria-label="Conflict">
      <header className={styles.conflictHead}>
        <CircleHelp aria-hidden="true" />
        <h2>
          {visibleText(conflict.with)} conflicts with the sessions merged before it: {plural(conflict.files.length, "file")}
        </h2>
      </header>
      {conflict.why !== null && <p className={styles.words}>The last resolution was rejected: {visibleLines(conflict.why)}</p>}
      {conflict.run !== null && (
        <p>
          <Link href={`/runs/${conflict.run}`} className="link">
            {conflict.run}
          </Link>{" "}
          is resolving it, attempt {conflict.attempt}.
        </p>
      )}
      <ul className={styles.files}>
        {conflict.files.map((file) => (
          <li key={file.path}>
            <ConflictedLine
              file={file}
              side={takenSides[file.path] ?? null}
              isWaiting={isWaiting}
              isLooked={looked === file.path}
              onLook={() => setLooked(looked === file.path ? null : file.path)}
              onTake={(side) => {
                const { [file.path]: _, ...others } = takenSides;
                setTakenSides(side === null ? others : { ...others, [file.path]: side });
              }}
            />
            {looked === file.path && conflict.session !== null && <Looked session={conflict.session} path={file.path} seq={view.seq} />}
          </li>
        ))}
      </ul>
      {isWaiting && (
        <>
          {left > 0 && conflict.session !== null && (
            <p className={styles.quiet}>
              Resolve the remaining files in the session <code>{visibleText(conflict.session)}</code>, for example with{" "}
              <code>caisson run "…" --session {visibleText(conflict.session)}</code>
            </p>
          )}
          <div className={styles.answers}>
            <Button
              look="main"
              disabled={isBusy}
              onClick={() => void resolve({ take }, "The merge continues if the conflict is resolved.")}
            >
              {left === 0 ? "Use these versions" : take.length === 0 ? "Resolved in the session" : "Use these; the rest is resolved"}
            </Button>
            <Button disabled={isBusy} onClick={() => void resolve({ agent: true }, "An agent is resolving the conflict.")}>
              Let an agent resolve it
            </Button>
          </div>
        </>
      )}
    </section>
  );
}

interface LineProps {
  file: ConflictedFile;
  side: Side | null;
  isWaiting: boolean;
  isLooked: boolean;
  onLook(): void;
  onTake(side: Side | null): void;
}

function ConflictedLine({ file: { path, kind, sides }, side, isWaiting, isLooked, onLook, onTake }: LineProps) {
  const pathText = visibleText(path);
  const choices: readonly { value: Side; label: string }[] = [
    { value: "merged", label: sides.merged === null ? "Keep it removed" : "Merged version" },
    { value: "theirs", label: sides.theirs === null ? "Remove it" : "This session's version" },
  ];
  return (
    <div className={styles.file}>
      <button type="button" className={styles.path} aria-expanded={isLooked} onClick={onLook}>
        <code>{pathText}</code>
      </button>
      <span className={styles.quiet}>{kinds[kind]}</span>
      {isWaiting && (
        <fieldset className={styles.sides}>
          <legend className="visually-hidden">Version of {pathText}</legend>
          {choices.map(({ value, label }) => (
            <Button key={value} isOn={side === value} onClick={() => onTake(side === value ? null : value)}>
              {label}
            </Button>
          ))}
        </fieldset>
      )}
    </div>
  );
}

const TEXT_BYTES_MAX = 256 * 1024;

/** Shows the file with its conflict markers, from the session where it is to be resolved. */
function Looked({ session, path, seq }: { session: string; path: string; seq: number }) {
  const station = useStation();
  const { data, error } = useQuery({
    queryKey: ["merge-file", session, path, seq],
    queryFn: async ({ signal }) => {
      const content = await new Response(await station.sessions.readFile(session, { path }, { signal })).bytes();
      if (content.length > TEXT_BYTES_MAX || content.includes(0)) return "This file is not text, or is too long to show here.";
      return new TextDecoder().decode(content);
    },
    retry: false,
  });
  if (error !== null) return <Problem error={error} />;
  return data === undefined ? <Loading rows={3} /> : <Value label={visibleText(path)} value={data} />;
}
