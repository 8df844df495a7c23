import { CaissonError } from "../../../../src/contract/error.ts";
import { ButtonLink } from "../../parts/button.tsx";
import { Empty } from "../../parts/empty.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Page } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import type { WorkKind } from "../../station/work-item.ts";

/** In the place of something that is on its way, is gone, or cannot be had. */
export function NotThere({ what, error, onRetry }: { what: WorkKind; error: unknown; onRetry(): void }) {
  const title = `${what.slice(0, 1).toUpperCase()}${what.slice(1)}`;
  return (
    <Page title={title}>
      {error === null && <Loading />}
      {error !== null && isGone(error) && (
        <Empty title={`There is no such ${what}`} action={<ButtonLink href="/work">All work</ButtonLink>}>
          It was removed, or was never here.
        </Empty>
      )}
      {error !== null && !isGone(error) && <Problem error={error} onRetry={onRetry} />}
    </Page>
  );
}

const isGone = (error: unknown) => error instanceof CaissonError && (error.code === "not_found" || error.code === "invalid");
