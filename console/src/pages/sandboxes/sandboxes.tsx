import { Page } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { useSandboxes } from "../../station/queries.ts";

export default function Sandboxes() {
  const { data, error, refetch } = useSandboxes();
  return (
    <Page title="Sandboxes">
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data?.sandboxes.map(({ id, state }) => (
        <div key={id}>
          {id} {state}
        </div>
      ))}
    </Page>
  );
}
