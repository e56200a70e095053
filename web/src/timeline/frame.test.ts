import { expect, test } from 'vitest';
import { madeBy, packageOf, placeOf, runsOf, shortFile } from './frame';

const torch = '/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py:1779 _call_impl';
const linear = '/opt/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py:134 forward';
const gpt2 = '/opt/venv/lib/python3.12/site-packages/transformers/models/gpt2/modeling_gpt2.py:243 forward';
const mine = '/home/me/train.py:31 main';

test.each([
  [mine, 'main', '/home/me/train.py', '31', false],
  [gpt2, 'forward', '/opt/venv/lib/python3.12/site-packages/transformers/models/gpt2/modeling_gpt2.py', '243', true],
  ['/usr/lib/python3.12/runpy.py:88 _run_code', '_run_code', '/usr/lib/python3.12/runpy.py', '88', true],
  ['<frozen runpy>:88 _run_code', '_run_code', '<frozen runpy>', '88', true],
  ['<ipython-input-3-ab>:2 <module>', '<module>', '<ipython-input-3-ab>', '2', false],
  ['?? at::native::empty_cuda(c10::ArrayRef<long>, int)', 'at::native::empty_cuda(c10::ArrayRef<long>, int)', '??', '', true],
  ['/home/me/torch_tricks.py:3 go', 'go', '/home/me/torch_tricks.py', '3', false],
])('%s', (text, name, file, line, library) => {
  expect(placeOf(text)).toEqual({ name, file, line, library });
});

/** lines are those of the frames that are shown, and how many are folded between them. */
function lines(frames: string[]) {
  return runsOf(frames).map((run) => (run.kind === 'frame' ? run.place.line : run.places.length));
}

test('libraries are folded, but for the part of the model that asked', () => {
  expect(lines([linear, torch, gpt2, torch, torch, torch, gpt2, mine, '<frozen runpy>:88 _run_code'])).toEqual([2, '243', 4, '31', '88']);
  expect(runsOf([])).toEqual([]);
});

test('of the layers of PyTorch that the user calls, the innermost is kept', () => {
  const encoder = linear.replace('linear.py:134 forward', 'transformer.py:540 forward');
  expect(lines([linear, torch, torch, encoder, torch, torch, mine])).toEqual(['134', 5, '31']);
  expect(lines([torch, torch, mine])).toEqual([2, '31']);
});

test('what made an allocation is named with who called it', () => {
  const user = { file: 'train.py', line: 31, function: 'main' };
  expect(madeBy({ model_frame: { file: '/v/site-packages/torch/nn/functional.py', line: 1443, function: 'dropout' }, user_frame: user })).toBe(
    'torch/nn/functional.py:1443 dropout, called from train.py:31 main',
  );
  expect(madeBy({ model_frame: user, user_frame: user })).toBe('train.py:31 main');
  expect(madeBy({ backward_node: 'AddmmBackward0' })).toBe('AddmmBackward0');
});

test('libraries have names, and files are told from where they are installed', () => {
  expect(packageOf(placeOf(torch).file)).toBe('torch');
  expect(packageOf('/usr/lib/python3.12/runpy.py')).toBe('Python');
  expect(packageOf('??')).toBe('C++');
  expect(shortFile(placeOf(torch).file)).toBe('torch/nn/modules/module.py');
  expect(shortFile('/home/me/train.py')).toBe('/home/me/train.py');
});
