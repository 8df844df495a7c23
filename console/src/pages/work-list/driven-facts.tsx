import { Link } from "wouter";
import type { DrivenView } from "../../../../src/contract/driven.ts";
import { Fact } from "../../parts/facts.tsx";
import { Time } from "../../parts/time.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import { workOfStream } from "../../station/work-item.ts";

/** What is known of everything that is driven: whose part it is, since when, until when, whose. */
export function DrivenFacts({ view }: { view: Pick<DrivenView, "parent" | "createdAt" | "endedAt" | "owner"> }) {
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
