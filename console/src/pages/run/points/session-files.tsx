import { useQuery } from "@tanstack/react-query";
import { CornerLeftUp, File, FileSymlink, Folder } from "lucide-react";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import type { SessionFiles as Listed, SessionPoint } from "../../../../../src/contract/session/session-verbs.ts";
import { ignoring } from "../../../../../src/lib/failures.ts";
import { useStation } from "../../../data/station.tsx";
import { bytes } from "../../../parts/amounts.ts";
import { Empty } from "../../../parts/empty.tsx";
import { useFilterParams } from "../../../parts/filter-params.ts";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import { visibleLines, visibleText } from "../../../parts/visible-text.ts";
import styles from "./points.module.css";

type Entry = Listed["entries"][number];
const TEXT_BYTES_MAX = 1024 * 1024;

/** Browses the session's files, now or after a step. Read-only. */
export default function SessionFiles({ view, point }: { view: RunView; point: SessionPoint | null }) {
  const station = useStation();
  const [params, change] = useFilterParams();
  const folder = params.get("path") ?? "";
  const filePath = params.get("file");
  const at = point === null ? {} : { at: point.step };
  const { data, error, refetch } = useQuery({
    queryKey: ["session-files", view.session, folder, point?.step ?? null, view.seq],
    queryFn: ({ signal }) => station.sessions.files(point === null ? view.session : view.run, { path: folder, ...at }, { signal }),
    retry: false,
    placeholderData: (before) => before,
  });
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading />;
  const inFolder = (name: string) => (folder === "" ? name : `${folder}/${name}`);
  const open = ({ name, kind }: Entry) =>
    kind === "directory" ? change({ path: inFolder(name), file: null }) : change({ file: inFolder(name) });
  const entries = data.entries.toSorted((one, other) => rank(one) - rank(other) || (one.name < other.name ? -1 : 1));
  return (
    <div className={styles.files}>
      <ul className={styles.entries} aria-label={folder === "" ? "Files" : `Files in ${visibleText(folder)}`}>
        {folder !== "" && (
          <li>
            <button type="button" className={styles.entry} onClick={() => change({ path: parentOf(folder), file: null })}>
              <CornerLeftUp aria-hidden="true" />
              {visibleText(folder)}
            </button>
          </li>
        )}
        {entries.map((entry) => (
          <li key={entry.name}>
            <button type="button" className={styles.entry} aria-current={inFolder(entry.name) === filePath} onClick={() => open(entry)}>
              {entry.kind === "directory" ? (
                <Folder aria-label="Folder" />
              ) : entry.kind === "link" ? (
                <FileSymlink aria-label="Link" />
              ) : (
                <File aria-hidden="true" />
              )}
              {visibleText(entry.name)}
            </button>
          </li>
        ))}
      </ul>
      {filePath === null || filePath === "" ? (
        <Empty title={entries.length === 0 ? "This folder is empty" : "Choose a file to view"}>
          {data.truncated && "Not all files are listed."}
        </Empty>
      ) : (
        <FileText {...{ view, point }} path={filePath} />
      )}
    </div>
  );
}

function FileText({ view, point, path }: { view: RunView; point: SessionPoint | null; path: string }) {
  const station = useStation();
  const { data, error, refetch } = useQuery({
    queryKey: ["session-text", view.session, path, point?.step ?? null, view.seq],
    queryFn: async ({ signal }) => {
      const query = { path, ...(point !== null && { at: point.step }) };
      const stream = await station.sessions.readFile(point === null ? view.session : view.run, query, { signal });
      return textOf(await new Response(stream).bytes());
    },
    retry: false,
    placeholderData: (before) => before,
  });
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading />;
  if (data.text === null) return <Empty title="This file is not text, or is too long to show here">{bytes(data.sizeBytes)}</Empty>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard.
    <section className={styles.text} aria-label={visibleText(path)} tabIndex={0}>
      {visibleLines(data.text)}
    </section>
  );
}

const rank = ({ kind }: Entry) => (kind === "directory" ? 0 : 1);
const parentOf = (folder: string) => folder.slice(0, Math.max(0, folder.lastIndexOf("/")));

function textOf(content: Uint8Array): { text: string | null; sizeBytes: number } {
  const sizeBytes = content.length;
  if (sizeBytes > TEXT_BYTES_MAX || content.subarray(0, 8_000).includes(0)) return { text: null, sizeBytes };
  return { text: ignoring("it is not text", () => new TextDecoder("utf-8", { fatal: true }).decode(content)) ?? null, sizeBytes };
}
