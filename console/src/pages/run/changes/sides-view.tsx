import { Columns2, Rows2 } from "lucide-react";
import { lazy, type ReactNode, Suspense } from "react";
import { Button } from "../../../parts/button.tsx";
import { Empty } from "../../../parts/empty.tsx";
import { useFilterParams } from "../../../parts/filter-params.ts";
import { Loading } from "../../../parts/loading.tsx";
import { Problem } from "../../../parts/problem.tsx";
import { useIsPhone } from "../../../parts/use-is-phone.ts";
import { visibleText } from "../../../parts/visible-text.ts";
import styles from "./changes.module.css";
import type { FileSides } from "./read-changes.ts";

const DiffView = lazy(() => import("./diff-view.tsx"));

interface SidesViewProps {
  path: string;
  sides: FileSides | undefined;
  error: unknown;
  onRetry(): void;
  /** Whether the sides are beside each other unless the address says otherwise. */
  isUsuallySplit?: boolean;
  /** What the sides are, above them. */
  heading?: ReactNode;
}

/** Shows two versions of a file, without comments. The address contains the layout. */
export function SidesView({ path, sides, error, onRetry, isUsuallySplit = false, heading }: SidesViewProps) {
  const isPhone = useIsPhone();
  const [params, change] = useFilterParams();
  const named = params.get("split");
  const isSplit = named === null ? isUsuallySplit : named === "1";
  const onLayout = (next: boolean) => change({ split: next === isUsuallySplit ? null : next ? "1" : "0" });
  return (
    <section className={styles.shown} aria-label={visibleText(path)}>
      <header className={styles.fileHead}>
        <code>{visibleText(path)}</code>
        {!isPhone && (
          <span className={styles.layouts}>
            <Button look="plain" label="Unified" icon={<Rows2 />} isOn={!isSplit} onClick={() => onLayout(false)} />
            <Button look="plain" label="Side by side" icon={<Columns2 />} isOn={isSplit} onClick={() => onLayout(true)} />
          </span>
        )}
      </header>
      {heading}
      {error !== null && <Problem error={error} onRetry={onRetry} />}
      {sides === undefined && error === null && <Loading />}
      {sides?.isOther && <Empty title="This file is not text, or is too long to show here" />}
      {sides !== undefined && !sides.isOther && (
        <Suspense fallback={<Loading />}>
          <DiffView path={path} before={sides.before ?? ""} after={sides.after ?? ""} isSideBySide={isSplit && !isPhone} />
        </Suspense>
      )}
    </section>
  );
}
