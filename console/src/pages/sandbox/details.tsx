import { useQueryClient } from "@tanstack/react-query";
import { TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import type { ChangeLabels } from "../../../../src/contract/label/change-labels.ts";
import type { SandboxInfo } from "../../../../src/contract/sandbox/sandbox.ts";
import { keys } from "../../data/queries.ts";
import { useStation } from "../../data/station.tsx";
import { bytes } from "../../parts/amounts.ts";
import { Copy } from "../../parts/copy.tsx";
import { LabelEditor } from "../../parts/label-editor.tsx";
import { duration, Time } from "../../parts/time.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import { networkWord, templateWord } from "../sandboxes/narrow-sandboxes.ts";
import styles from "./details.module.css";
import type { SandboxPart } from "./use-sandbox.ts";

/** The configuration of a sandbox, and the defaults that could not be enforced. */
export default function Details({ sandbox }: SandboxPart) {
  const { id, name, runtime, owner, createdAt, template, network, workspace, mounts, warnings, allowRoot, keep } = sandbox;
  return (
    <div className={styles.details}>
      {warnings.length > 0 && (
        <ul className={styles.warnings}>
          {warnings.map((warning) => (
            <li key={warning}>
              <TriangleAlert aria-hidden="true" />
              {warning}
            </li>
          ))}
        </ul>
      )}
      <Part title="About">
        <Fact name="ID">
          <code>{id}</code>
          <Copy text={id} what="ID" />
        </Fact>
        {name !== undefined && <Fact name="Name">{visibleText(name)}</Fact>}
        <Fact name="Runtime">{runtime}</Fact>
        <Fact name="Template">{visibleText(templateWord(template))}</Fact>
        <Fact name="Created">
          <Time at={createdAt} />
        </Fact>
        <Fact name="Owner">{owner}</Fact>
        <Fact name="Network">{visibleText(networkWord(network))}</Fact>
        <Fact name="Root access">{allowRoot ? "via sudo" : "no"}</Fact>
        <Fact name="Lifetime">{keep ? "until removed" : "removed with its creator"}</Fact>
        <Fact name="Labels">
          <SandboxLabels sandbox={sandbox} />
        </Fact>
      </Part>
      <Limits limits={sandbox.limits} />
      <Part title="Folders">
        <Fact name="/workspace">
          {workspace.kind === "empty" ? "starts empty" : <Folder path={workspace.path} access={workspace.access} />}
        </Fact>
        {mounts.map(({ path, target, access }) => (
          <Fact key={target} name={visibleText(target)}>
            <Folder path={path} access={access} />
          </Fact>
        ))}
      </Part>
    </div>
  );
}

function SandboxLabels({ sandbox: { id, labels } }: SandboxPart) {
  const station = useStation();
  const queries = useQueryClient();
  const change = async (changes: ChangeLabels) => {
    queries.setQueryData(keys.sandbox(id), await station.sandboxes.label(id, changes));
    await queries.invalidateQueries({ queryKey: keys.sandboxes });
  };
  return <LabelEditor kind="sandbox" labels={labels} onChange={change} />;
}

function Limits({ limits }: { limits: SandboxInfo["limits"] }) {
  const unlimited = <span className={styles.quiet}>not enforced</span>;
  const of = <Value,>(value: Value | null, text: (value: Value) => string) => (value === null ? unlimited : text(value));
  return (
    <Part title="Limits">
      <Fact name="CPUs">{of(limits.cpus, String)}</Fact>
      <Fact name="Memory">{of(limits.memoryBytes, bytes)}</Fact>
      <Fact name="Processes">{of(limits.pids, (count) => count.toLocaleString())}</Fact>
      <Fact name="Disk">{of(limits.diskBytes, bytes)}</Fact>
      <Fact name="Time per command">{duration(limits.wallClockMs)}</Fact>
      <Fact name="Output per command">{of(limits.outputBytes, bytes)}</Fact>
    </Part>
  );
}

const accesses = { overlay: "changes stay inside", rw: "read-write", ro: "read-only" } as const;

function Folder({ path, access }: { path: string; access: keyof typeof accesses }) {
  return (
    <>
      <code>{visibleText(path)}</code> <span className={styles.quiet}>{accesses[access]}</span>
    </>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className={styles.part}>
      <h2>{title}</h2>
      <dl>{children}</dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={styles.fact}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
