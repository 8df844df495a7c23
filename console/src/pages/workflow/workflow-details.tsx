import type { WorkflowDefinition } from "../../../../src/contract/workflow/workflow.ts";
import type { WorkflowView } from "../../../../src/contract/workflow/workflow-verbs.ts";
import { Copy } from "../../parts/copy.tsx";
import { Fact, Facts, Section } from "../../parts/facts.tsx";
import { Side } from "../../parts/two-columns.tsx";
import { Value } from "../../parts/value.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { JobFacts } from "../job/job-facts.tsx";
import styles from "./workflow.module.css";

/** The whole instance: its result, facts, input and data. */
export function WorkflowDetails({ view, done, all }: { view: WorkflowView; done: number; all: number }) {
  const { description, version } = view.definition as unknown as WorkflowDefinition;
  return (
    <Side label="About this workflow">
      {description !== undefined && <p className={styles.description}>{visibleLines(description)}</p>}
      {view.output !== null && (
        <Section title="Result">
          <Value label="Result" value={view.output} />
        </Section>
      )}
      <Section title="About">
        <Facts>
          <Fact name="ID">
            <code>{view.id}</code> <Copy text={view.id} what="ID" />
          </Fact>
          <Fact name="Steps">
            {done} of {all} done
          </Fact>
          {version !== undefined && <Fact name="Version">{visibleText(String(version))}</Fact>}
          <Fact name="Definition">
            <code>{view.digest.slice(0, 12)}</code>
          </Fact>
          <JobFacts view={view} />
        </Facts>
      </Section>
      {hasSomething(view.input) && (
        <Section title="Input">
          <Value label="Input" value={view.input} />
        </Section>
      )}
      {hasSomething(view.data) && (
        <Section title="Shared data">
          <Value label="Shared data" value={view.data} />
        </Section>
      )}
    </Side>
  );
}

const hasSomething = (value: unknown) => value !== null && (typeof value !== "object" || Object.keys(value).length > 0);
