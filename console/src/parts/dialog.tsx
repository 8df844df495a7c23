import { type ReactNode, useEffect, useRef } from "react";
import styles from "./dialog.module.css";

/** Over everything else, closed by Escape, a click beside it, or its owner. The browser keeps the focus inside. */
export function Dialog({
  title,
  onClose,
  children,
  actions,
}: {
  title: string;
  onClose(): void;
  children: ReactNode;
  actions?: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    // The browser would choose the first element that can have the focus, even one that Tab skips; its own attribute for this is not kept by React.
    const first = shown?.querySelector<HTMLElement>("[data-first-focus]") ?? shown?.querySelector<HTMLElement>("input, textarea, select");
    first?.focus();
    return () => shown?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it, which the browser sees to.
    <dialog
      ref={dialog}
      className={styles.dialog}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div className={styles.inside}>
        <h2>{title}</h2>
        {children}
        {actions !== undefined && <div className={styles.actions}>{actions}</div>}
      </div>
    </dialog>
  );
}
