/** A small bar chart of counts, oldest first. Renders nothing without counts. */
export function Sparkline({ counts, label, className }: { counts: readonly number[]; label: string; className?: string | undefined }) {
  if (counts.length === 0) return null;
  const most = Math.max(1, ...counts);
  const width = 100 / counts.length;
  return (
    <svg className={className} viewBox="0 0 100 20" preserveAspectRatio="none" role="img" aria-label={label} fill="currentColor">
      {counts.map((count, slot) => {
        const height = count === 0 ? 1 : 2 + (count / most) * 18;
        // biome-ignore lint/suspicious/noArrayIndexKey: a bar is identified by its index.
        return <rect key={slot} x={slot * width} y={20 - height} width={width * 0.7} height={height} opacity={count === 0 ? 0.3 : 1} />;
      })}
    </svg>
  );
}
