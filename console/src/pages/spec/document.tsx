import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import type { SpecView } from "../../../../src/contract/spec/spec-verbs.ts";
import { useStation } from "../../data/station.tsx";
import { Loading } from "../../parts/loading.tsx";
import { Problem } from "../../parts/problem.tsx";
import styles from "./spec.module.css";

const Words = lazy(() => import("../../parts/words.tsx"));

/** The whole spec as one document, as `export` returns it. */
export function Document({ view: { spec, seq } }: { view: SpecView }) {
  const station = useStation();
  const { data, error, refetch } = useQuery({
    queryKey: ["spec-text", spec, seq],
    queryFn: ({ signal }) => station.specs.export(spec, { format: "markdown" }, { signal }),
    placeholderData: (before) => before,
  });
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading />;
  return (
    <article className={styles.document} aria-label="The spec as a document">
      <Suspense fallback={<Loading />}>
        <Words text={data.text} />
      </Suspense>
    </article>
  );
}
