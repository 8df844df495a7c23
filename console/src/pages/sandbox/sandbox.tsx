import { lazy, Suspense } from "react";
import { useParams, useSearchParams } from "wouter";
import { CaissonError } from "../../../../src/contract/error/error.ts";
import type { SandboxInfo } from "../../../../src/contract/sandbox/sandbox.ts";
import { ButtonLink } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Empty } from "../../parts/empty.tsx";
import { Loading } from "../../parts/loading.tsx";
import { NameLine } from "../../parts/name-line.tsx";
import { Page } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import { useIsUnsaved } from "../../parts/unsaved.ts";
import { visibleText } from "../../parts/visible-text.ts";
import { SandboxState } from "../sandboxes/sandbox-state.tsx";
import styles from "./sandbox.module.css";
import { SandboxActions } from "./sandbox-actions.tsx";
import { useSandbox } from "./use-sandbox.ts";

const tabs = {
  terminal: { label: "Terminal", part: lazy(() => import("./terminal/terminals.tsx")) },
  files: { label: "Files", part: lazy(() => import("./files/files.tsx")) },
  processes: { label: "Processes", part: lazy(() => import("./processes.tsx")) },
  ports: { label: "Ports", part: lazy(() => import("./ports/ports.tsx")) },
  network: { label: "Network", part: lazy(() => import("./network.tsx")) },
  resources: { label: "Resources", part: lazy(() => import("./resources.tsx")) },
  snapshots: { label: "Snapshots", part: lazy(() => import("./snapshots.tsx")) },
  details: { label: "Details", part: lazy(() => import("./details.tsx")) },
} as const;

export default function Sandbox() {
  const { sandbox: id = "" } = useParams<{ sandbox: string }>();
  const { data, error, refetch } = useSandbox(id);
  if (data !== undefined) return <SandboxPage sandbox={data} isGone={isGone(error)} />;
  return (
    <Page title={id}>
      {error === null && <Loading />}
      {error !== null && isGone(error) && (
        <Empty title="There is no such sandbox" action={<ButtonLink href="/sandboxes">All sandboxes</ButtonLink>}>
          It was removed or never existed.
        </Empty>
      )}
      {error !== null && !isGone(error) && <Problem error={error} onRetry={() => void refetch()} />}
    </Page>
  );
}

const isGone = (error: unknown) => error instanceof CaissonError && error.code === "not_found";

function SandboxPage({ sandbox, isGone: isRemoved }: { sandbox: SandboxInfo; isGone: boolean }) {
  const [params] = useSearchParams();
  const isUnsaved = useIsUnsaved();
  const requestedTab = params.get("tab") ?? "terminal";
  const chosen = (requestedTab in tabs ? requestedTab : "terminal") as keyof typeof tabs;
  const { part: Part } = tabs[chosen];
  const hrefOf = (tab: string) => `/sandboxes/${sandbox.id}?tab=${tab}`;
  const name = visibleText(sandbox.name ?? sandbox.id);
  return (
    <Page
      title={`${name} (${isRemoved ? "removed" : sandbox.state})`}
      name={
        <NameLine up={{ href: "/sandboxes", label: "Sandboxes" }} name={name}>
          <Copy text={sandbox.id} what="ID" />
          <SandboxState sandbox={isRemoved ? { state: "completed" } : sandbox} />
        </NameLine>
      }
      actions={!isRemoved && <SandboxActions sandbox={sandbox} />}
    >
      <div className={styles.page}>
        <Tabs
          label="Sandbox sections"
          current={hrefOf(chosen)}
          tabs={Object.entries(tabs).map(([tab, { label }]) => ({ href: hrefOf(tab), label, isUnsaved: tab === "files" && isUnsaved }))}
        />
        <div className={styles.part}>
          {isRemoved && !isUnsaved ? (
            <Empty title="This sandbox was removed" action={<ButtonLink href="/sandboxes">All sandboxes</ButtonLink>} />
          ) : (
            <Suspense fallback={<Loading />}>
              <Part key={sandbox.id} sandbox={sandbox} />
            </Suspense>
          )}
        </div>
      </div>
    </Page>
  );
}
