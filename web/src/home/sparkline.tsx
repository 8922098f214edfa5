// A small line of values over time. Plain SVG: the chart library is larger than the rest of the home page.

interface SparklineProps {
  /** What the values are, for screen readers. */
  label: string;
  values: number[];
}

const [width, height] = [120, 32];

export function Sparkline({ label, values }: SparklineProps) {
  const highest = Math.max(...values, Number.MIN_VALUE);
  const step = width / Math.max(1, values.length - 1);
  const points = values.map((value, at) => {
    const y = height - 2 - (value / highest) * (height - 4);
    return `${(at * step).toFixed(1)},${y.toFixed(1)}`;
  });
  return (
    <svg
      className="sparkline"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <polygon points={`0,${height} ${points.join(' ')} ${width},${height}`} />
      <polyline points={points.join(' ')} />
    </svg>
  );
}
