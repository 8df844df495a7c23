import { Link } from "wouter";
import type { JobView } from "../../../../src/contract/durable/durable-job.ts";
import { workOfStream } from "../../data/work-item.ts";
import { Fact } from "../../parts/facts.tsx";
import { Time } from "../../parts/time.tsx";
import { visibleText } from "../../parts/visible-text.ts";

/** The facts that all durable jobs have. */
export function JobFacts({ view }: { view: Pick<JobView, "parent" | "createdAt" | "endedAt" | "owner"> }) {
  const parent = view.parent === null ? null : workOfStream(view.parent);
  return (
    <>
      {parent !== null && (
        <Fact name="Part of">
          <Link href={parent.href} className="link">
            {parent.id}
          </Link>
        </Fact>
      )}
      <Fact name="Started">
        <Time at={view.createdAt} />
      </Fact>
      {view.endedAt !== null && (
        <Fact name="Ended">
          <Time at={view.endedAt} />
        </Fact>
      )}
      <Fact name="Owner">{visibleText(view.owner)}</Fact>
    </>
  );
}
