import { useQuery } from "@tanstack/react-query";
import { Fragment, type ReactNode } from "react";
import { useParams } from "wouter";
import { kindNames, type WorkKind, type WorkStatus } from "../../data/work-item.ts";
import { workKeys } from "../../data/work-queries.ts";
import { Badge } from "../../parts/badge.tsx";
import { NameLine } from "../../parts/name-line.tsx";
import { NotThere } from "../../parts/not-there.tsx";
import { Page } from "../../parts/page.tsx";
import { visibleText } from "../../parts/visible-text.ts";

interface JobPageProps<View> {
  kind: WorkKind;
  get(word: string, options: { signal: AbortSignal }): Promise<View>;
  /** `word` is the id or name in the address. */
  children: (view: View, word: string) => ReactNode;
}

/** Loads the durable job that the page's address names. */
export function JobPage<View>({ kind, get, children }: JobPageProps<View>) {
  const word = useParams<Record<string, string>>()[kind] ?? "";
  return (
    <LoadedJob key={word} kind={kind} get={get} word={word}>
      {children}
    </LoadedJob>
  );
}

function LoadedJob<View>({ kind, get, word, children }: JobPageProps<View> & { word: string }) {
  const { data, error, refetch } = useQuery({ queryKey: workKeys.of(kind, word), queryFn: ({ signal }) => get(word, { signal }) });
  if (data === undefined) return <NotThere what={kindNames[kind].one} error={error} onRetry={() => void refetch()} />;
  return <Fragment>{children(data, word)}</Fragment>;
}

interface JobFrameProps {
  kind: WorkKind;
  status: WorkStatus;
  title: string;
  /** The browser's title, if it differs. */
  shortTitle?: string;
  actions: ReactNode;
  children: ReactNode;
}

/** The frame of a durable job's page: its title, state and actions. */
export function JobFrame({ kind, status, title, shortTitle = title, actions, children }: JobFrameProps) {
  return (
    <Page
      title={`${status.word}: ${visibleText(shortTitle)}`}
      name={
        <NameLine up={{ href: `/work?kind=${kind}`, label: kindNames[kind].all }} name={visibleText(title)}>
          <Badge tone={status.tone}>{status.word}</Badge>
        </NameLine>
      }
      actions={actions}
    >
      {children}
    </Page>
  );
}
