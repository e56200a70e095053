import type { ButtonHTMLAttributes } from 'react';

const looks = {
  primary: 'bg-accent text-on-accent font-semibold hover:brightness-110',
  plain: 'border border-line-strong text-text hover:bg-raised',
  quiet: 'text-muted hover:text-text hover:bg-raised',
  danger: 'border border-bad/60 text-bad-text hover:bg-bad-soft',
};

type Size = 'normal' | 'small';

/** buttonLook is for links that stand next to buttons. */
export function buttonLook(look: keyof typeof looks, size: Size): string {
  const room = size === 'small' ? 'px-2.5 py-1 text-xs' : 'px-4 py-2 text-sm';
  return `inline-flex items-center justify-center gap-2 rounded transition disabled:cursor-not-allowed disabled:opacity-50 ${room} ${looks[look]}`;
}

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: keyof typeof looks;
  size?: Size;
}

export function Button({ look = 'plain', size = 'normal', type = 'button', className = '', ...rest }: Props) {
  return <button type={type} className={`${buttonLook(look, size)} ${className}`} {...rest} />;
}
