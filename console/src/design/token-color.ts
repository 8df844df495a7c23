/** What a value of the design comes out as here, for a canvas, which knows no variables. */
export function tokenColor(place: HTMLElement, token: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  place.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}
