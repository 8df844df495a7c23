import { CaissonError } from "../../../src/contract/error/error.ts";
import { ButtonLink } from "./button.tsx";
import { Empty } from "./empty.tsx";
import { Loading } from "./loading.tsx";
import { Page } from "./page.tsx";
import { Problem } from "./problem.tsx";

/** A page for something that is still loading, was removed, or cannot be loaded. */
export function NotThere({ what, error, onRetry }: { what: string; error: unknown; onRetry(): void }) {
  const title = `${what.slice(0, 1).toUpperCase()}${what.slice(1)}`;
  return (
    <Page title={title}>
      {error === null && <Loading />}
      {error !== null && isGone(error) && (
        <Empty title={`There is no such ${what}`} action={<ButtonLink href="/work">All work</ButtonLink>}>
          It was removed or never existed.
        </Empty>
      )}
      {error !== null && !isGone(error) && <Problem error={error} onRetry={onRetry} />}
    </Page>
  );
}

const isGone = (error: unknown) => error instanceof CaissonError && (error.code === "not_found" || error.code === "invalid");
