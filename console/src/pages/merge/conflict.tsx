import { useQuery } from "@tanstack/react-query";
import { CircleHelp } from "lucide-react";
import { useState } from "react";
import { Link } from "wouter";
import type { ConflictedFile } from "../../../../src/contract/merge-event.ts";
import type { MergeView } from "../../../../src/contract/merge-verbs.ts";
import { plural } from "../../parts/amounts.ts";
import { Button } from "../../parts/button.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Problem } from "../../parts/problem.tsx";
import { say, sayProblem } from "../../parts/toasts.tsx";
import { Value } from "../../parts/value.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { useStation } from "../../station/station.tsx";
import styles from "./merge.module.css";

const kinds: Readonly<Record<ConflictedFile["kind"], string>> = {
  content: "changed by both",
  added_twice: "made by both",
  changed_and_removed: "changed by one, removed by the other",
  not_text: "changed by both, not text",
  renamed: "moved by one",
};
type Side = "merged" | "theirs";

/** What does not go together. Where a person is asked: which side is taken of each file, or that it is resolved. */
export function Conflict({ view, onDone }: { view: MergeView; onDone(view: MergeView): void }) {
  const station = useStation();
  const [taken, setTaken] = useState<Readonly<Record<string, Side>>>({});
  const [looked, setLooked] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const { conflict } = view;
  if (conflict === null || view.finish !== null) return null;
  const isAsked = view.waits?.person != null;
  const take = Object.entries(taken).map(([path, side]) => ({ path, side }));
  const resolve = async (request: { take?: typeof take; agent?: boolean }, done: string) => {
    setBusy(true);
    try {
      onDone(await station.merges.resolve(view.id, request));
      say(done);
      setTaken({});
    } catch (error) {
      sayProblem(error);
    } finally {
      setBusy(false);
    }
  };
  const left = conflict.files.length - take.length;
  return (
    <section className={isAsked ? styles.asked : styles.conflict} aria-label="The conflict">
      <header className={styles.conflictHead}>
        <CircleHelp aria-hidden="true" />
        <h2>
          {visibleText(conflict.with)} does not go together with what was merged before it: {plural(conflict.files.length, "file")}
        </h2>
      </header>
      {conflict.why !== null && <p className={styles.words}>The last resolution was none: {visibleLines(conflict.why)}</p>}
      {conflict.run !== null && (
        <p>
          <Link href={`/runs/${conflict.run}`} className="link">
            {conflict.run}
          </Link>{" "}
          resolves it, attempt {conflict.attempt}.
        </p>
      )}
      <ul className={styles.files}>
        {conflict.files.map((file) => (
          <li key={file.path}>
            <ConflictedLine
              file={file}
              side={taken[file.path] ?? null}
              isAsked={isAsked}
              isLooked={looked === file.path}
              onLook={() => setLooked(looked === file.path ? null : file.path)}
              onTake={(side) => {
                const { [file.path]: _, ...others } = taken;
                setTaken(side === null ? others : { ...others, [file.path]: side });
              }}
            />
            {looked === file.path && conflict.session !== null && <Looked session={conflict.session} path={file.path} seq={view.seq} />}
          </li>
        ))}
      </ul>
      {isAsked && (
        <>
          {left > 0 && conflict.session !== null && (
            <p className={styles.quiet}>
              What is left is to be resolved in the session <code>{visibleText(conflict.session)}</code>, such as with{" "}
              <code>caisson run "…" --session {visibleText(conflict.session)}</code>
            </p>
          )}
          <div className={styles.answers}>
            <Button look="main" disabled={isBusy} onClick={() => void resolve({ take }, "Looked at; it goes on if it is resolved.")}>
              {left === 0 ? "Take these sides" : take.length === 0 ? "It is resolved in the session" : "Take these, the rest is resolved"}
            </Button>
            <Button disabled={isBusy} onClick={() => void resolve({ agent: true }, "The agent resolves it.")}>
              Let the agent do it
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
  isAsked: boolean;
  isLooked: boolean;
  onLook(): void;
  onTake(side: Side | null): void;
}

function ConflictedLine({ file: { path, kind, sides }, side, isAsked, isLooked, onLook, onTake }: LineProps) {
  const shown = visibleText(path);
  const choices: readonly { value: Side; label: string }[] = [
    { value: "merged", label: sides.merged === null ? "Remove it, as before" : "What was merged" },
    { value: "theirs", label: sides.theirs === null ? "Remove it, as this one" : "What this one has" },
  ];
  return (
    <div className={styles.file}>
      <button type="button" className={styles.path} aria-expanded={isLooked} onClick={onLook}>
        <code>{shown}</code>
      </button>
      <span className={styles.quiet}>{kinds[kind]}</span>
      {isAsked && (
        <fieldset className={styles.sides}>
          <legend className="visually-hidden">Which side of {shown}</legend>
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

/** The file as it is where it is to be resolved, marks of the conflict included. */
function Looked({ session, path, seq }: { session: string; path: string; seq: number }) {
  const station = useStation();
  const { data, error } = useQuery({
    queryKey: ["merge-file", session, path, seq],
    queryFn: async ({ signal }) => {
      const content = await new Response(await station.sessions.readFile(session, { path }, { signal })).bytes();
      if (content.length > TEXT_BYTES_MAX || content.includes(0)) return "This is no text, or too long to be shown here.";
      return new TextDecoder().decode(content);
    },
    retry: false,
  });
  if (error !== null) return <Problem error={error} />;
  return data === undefined ? <Loading rows={3} /> : <Value label={visibleText(path)} value={data} />;
}
