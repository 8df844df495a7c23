import { lazy, Suspense, useEffect, useState } from "react";
import { useLocation } from "wouter";
import { listenForPlaces } from "./shortcuts.ts";

const Palette = lazy(() => import("./palette.tsx"));

/** The keys that work everywhere. */
export function Keys() {
  const [, navigate] = useLocation();
  const [isOpen, setOpen] = useState(false);
  useEffect(() => listenForPlaces(navigate), [navigate]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "k" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen((shown) => !shown);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  if (!isOpen) return null;
  return (
    <Suspense fallback={null}>
      <Palette onClose={() => setOpen(false)} />
    </Suspense>
  );
}
