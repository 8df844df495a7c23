import { useQuery } from "@tanstack/react-query";
import type { Client } from "../../../../src/client/connect.ts";
import { CaissonError } from "../../../../src/contract/error/error.ts";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { useFilterParams } from "../../parts/filter-params.ts";
import { visibleText } from "../../parts/visible-text.ts";
import { decodeText, type FileSides, TEXT_BYTES_MAX } from "../run/changes/read-changes.ts";
import { SidesView } from "../run/changes/sides-view.tsx";
import styles from "./compare.module.css";
import { type ComparedFile, type ComparedGroup, comparedGroups } from "./compared-files.ts";

interface ComparedChangesProps {
  views: readonly [RunView, RunView];
  files: readonly ComparedFile[];
}

/** The files that two runs changed, and both versions of one of them. */
export function ComparedChanges({ views, files }: ComparedChangesProps) {
  const [params, change] = useFilterParams();
  const [one, other] = [views[0].name ?? views[0].run, views[1].name ?? views[1].run];
  const titles: Readonly<Record<ComparedGroup, string>> = {
    different: "Different in A and B",
    one: "Changed only in A",
    other: "Changed only in B",
    same: "The same in A and B",
  };
  const file = files.find(({ path }) => path === params.get("file")) ?? files[0];
  return (
    <div className={styles.changes}>
      <nav className={styles.list} aria-label="Compared files">
        {comparedGroups.map((group) => {
          const members = files.filter((each) => each.group === group);
          if (members.length === 0) return null;
          return (
            <section key={group} aria-label={titles[group]}>
              <h2>
                {titles[group]} <span className={styles.count}>{members.length}</span>
              </h2>
              <ul>
                {members.map((each) => (
                  <li key={each.path}>
                    <button type="button" className={styles.file} aria-current={each === file} onClick={() => change({ file: each.path })}>
                      {visibleText(each.path)}
                    </button>
                  </li>
                ))}
              </ul>
            </section>
          );
        })}
      </nav>
      {file !== undefined && <BothVersions key={file.path} {...{ views, file }} names={[one, other]} />}
    </div>
  );
}

function BothVersions({ views, file, names }: { views: ComparedChangesProps["views"]; file: ComparedFile; names: [string, string] }) {
  const station = useStation();
  const [one, other] = views;
  const { data, error, refetch } = useQuery({
    queryKey: ["session-file", "compare", one.session, one.seq, other.session, other.seq, file.path],
    queryFn: async ({ signal }): Promise<FileSides> => {
      const [before, after] = await Promise.all(views.map((view) => readText(station, { view, path: file.path, signal })));
      return { before: before ?? null, after: after ?? null, isOther: before === undefined || after === undefined };
    },
    retry: false,
    placeholderData: (shown) => shown,
  });
  const missing = [data?.before === null && "A", data?.after === null && "B"].filter(Boolean);
  return (
    <SidesView
      path={file.path}
      sides={data}
      error={error}
      onRetry={() => void refetch()}
      isUsuallySplit
      heading={
        <div className={styles.sides}>
          {names.map((name, index) => (
            <span key={views[index]?.run}>
              <span className={styles.side} data-side={index === 0 ? "one" : "other"}>
                {index === 0 ? "A" : "B"}
              </span>{" "}
              {visibleText(name)}
            </span>
          ))}
          {missing.length > 0 && data?.isOther === false && <span className={styles.note}>{missing.join(" and ")} does not have it.</span>}
        </div>
      }
    />
  );
}

/** Returns the text of a file in a run's session; null if it does not exist, undefined if it is not text. */
async function readText(
  station: Client,
  { view, path, signal }: { view: RunView; path: string; signal: AbortSignal },
): Promise<string | null | undefined> {
  try {
    const content = await new Response(await station.sessions.readFile(view.session, { path }, { signal })).bytes();
    return content.length > TEXT_BYTES_MAX ? undefined : decodeText(content);
  } catch (error) {
    if (error instanceof CaissonError && error.code === "not_found") return null;
    if (error instanceof CaissonError && (error.code === "unsupported" || error.code === "too_large")) return undefined;
    throw error;
  }
}
