# Makes torch_save.pth: python3 torch_save.py torch_save.pth
import argparse, sys

import torch
t=torch.arange(6,dtype=torch.float32).reshape(2,3)/4
d={'module.plain':t.clone(),'module.double':t.double(),'module.half':t.half(),'module.brain':t.bfloat16(),
'module.parameter':torch.nn.Parameter(t.clone()),'module._checkpoint_wrapped_module.wrapped.inner':t.clone(),
'module.transposed':t.clone().t(),'module.second_row':t.clone()[1],'module.count':torch.tensor(-5),
'module.small_halves':torch.tensor([2**-14,2**-24,-2.,65504.]).half()}
from collections import OrderedDict
torch.save({'epoch':7,'model':OrderedDict(d),'optimizer':{'state':{0:{'step':torch.tensor(3.),'exp_avg':t}},'param_groups':[{'lr':1e-3,'betas':(0.9,0.999),'params':[0,1]}]},'args':argparse.Namespace(a=1,b='x',big=2**70)},sys.argv[1])
