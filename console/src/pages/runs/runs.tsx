import { Empty } from "../../parts/empty.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Page } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { Time } from "../../parts/time.tsx";
import { useRuns } from "../../station/queries.ts";
import { RunStatus } from "./run-status.tsx";

export default function Runs() {
  const { data, error, refetch } = useRuns();
  return (
    <Page title="Runs">
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Loading />}
      {data?.runs.length === 0 && <Empty title="No runs yet" />}
      {data?.runs.map((view) => (
        <div key={view.run}>
          <RunStatus view={view} /> {view.title} <Time at={view.updatedAt} />
        </div>
      ))}
    </Page>
  );
}
