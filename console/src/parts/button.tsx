import type { ButtonHTMLAttributes, ReactNode } from "react";
import { Link } from "wouter";
import styles from "./button.module.css";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** `main`: the most important action here; `plain`: no frame until hovered. */
  look?: "main" | "normal" | "plain" | "danger";
  icon?: ReactNode;
  /** The accessible name of a button with only an icon. */
  label?: string;
  /** Whether a toggle is on. */
  isOn?: boolean;
  /** Marks the button of a dialog that gets the focus first, so that Enter presses it. */
  "data-first-focus"?: "";
}

export function Button({ look = "normal", icon, label, isOn, children, className = "", ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      aria-label={label ?? rest["aria-label"]}
      title={rest.title ?? label}
      {...(isOn !== undefined && { "aria-pressed": isOn })}
      className={`${styles.button} ${styles[look]} ${children === undefined ? styles.square : ""} ${className}`}
    >
      {icon}
      {children}
    </button>
  );
}

/** A link that looks like a button; only its icon if it has a label. */
export function ButtonLink({
  href,
  look = "normal",
  icon,
  label,
  children,
}: Pick<ButtonProps, "look" | "icon" | "label" | "children"> & { href: string }) {
  return (
    <Link
      href={href}
      aria-label={label}
      title={label}
      className={`${styles.button} ${styles[look]} ${children === undefined ? styles.square : ""}`}
    >
      {icon}
      {children}
    </Link>
  );
}
