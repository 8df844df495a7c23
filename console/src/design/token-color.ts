/** Resolves a design token to a color for a canvas, which does not support CSS variables. */
export function tokenColor(place: HTMLElement, token: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  place.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}
