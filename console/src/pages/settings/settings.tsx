import { lazy, Suspense } from "react";
import { Redirect, useParams } from "wouter";
import { Loading } from "../../parts/loading.tsx";
import { Page } from "../../parts/page.tsx";
import { Tabs } from "../../parts/tabs.tsx";
import styles from "./settings.module.css";

const parts = {
  look: { label: "Appearance", part: lazy(() => import("./look.tsx")) },
  tokens: { label: "Tokens", part: lazy(() => import("./tokens.tsx")) },
  secrets: { label: "Secrets", part: lazy(() => import("./secrets.tsx")) },
  agents: { label: "Agents", part: lazy(() => import("./agents.tsx")) },
  doctor: { label: "Doctor", part: lazy(() => import("./doctor.tsx")) },
  isolation: { label: "Isolation", part: lazy(() => import("./isolation.tsx")) },
  storage: { label: "Storage", part: lazy(() => import("./storage.tsx")) },
  audit: { label: "Audit", part: lazy(() => import("./audit.tsx")) },
  shortcuts: { label: "Shortcuts", part: lazy(() => import("./shortcuts.tsx")) },
} as const;

export default function Settings() {
  const { part = "look" } = useParams<{ part?: string }>();
  if (!Object.hasOwn(parts, part)) return <Redirect to="/settings/look" replace />;
  const { label, part: Part } = parts[part as keyof typeof parts];
  const tabs = Object.entries(parts).map(([name, each]) => ({ href: `/settings/${name}`, label: each.label }));
  return (
    <Page title={`${label} settings`} name="Settings">
      <Tabs tabs={tabs} current={`/settings/${part}`} label="Settings sections" />
      <div className={styles.part}>
        <Suspense fallback={<Loading />}>
          <Part />
        </Suspense>
      </div>
    </Page>
  );
}
