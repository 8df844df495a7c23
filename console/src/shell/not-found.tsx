import { Link } from "wouter";
import { Empty } from "../parts/empty.tsx";
import { Page } from "../parts/page.tsx";

export function NotFound() {
  return (
    <Page title="Not found">
      <Empty title="There is nothing at this address">
        <p>
          What was here may have been removed. <Link href="/runs">All runs</Link>
        </p>
      </Empty>
    </Page>
  );
}
