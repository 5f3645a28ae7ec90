"""The words of synthetic texts.

Common short English words: nearly every vocabulary trained on text has each of them as a single
token, alone and after a space. Their order is part of what makes texts the same everywhere.
"""

from typing import Final

_IN_ORDER: Final = """
the of and to in is that for it as was with be by on not he his but at are this have from or had
an they which one you were her all she there would their we him been has when who will more no
if out so said what up its about into than them can only other new some could time these two may
then do first any my now such like our over man me even most made after also did many before
must through back years where much your way well down should because each just those people how
too little state good very make world still own see men work long get here between both life
being under never day same another know while last might us great old year off come since
against go came right used take three few house use during without again place around however
home small found thought went say part once general high upon school every does got left number
course war until always away something fact water less public put think almost hand enough far
head yet government system better set nothing night end why called find going look later point
next program city business give group young days let room word side social given present several
order national possible rather second face among form important often things early white case
large need big four within felt children along best ever least power light thing done family
interest want members country area open problem service certain kind different door help sense
means whole matter above hold line name law body action street book report story money question
example music market history river field court office paper table letter plan rate force voice
full study clear close change center age party land space love town step front record period
player team game stage season press bank trade price stock tax cost value unit test model data
type list note page site link text file code image color sound shape scale level range speed
mass heat energy gas metal oil iron stone wood glass tree plant animal bird fish horse dog blood
heart brain skin bone cell food bread milk sugar salt wine fruit apple farm road bridge ship
boat train car wheel engine machine tool wall floor window bed chair cloth ring gold king lord
child boy girl woman mother father brother son daughter friend teacher student doctor writer
artist actor leader member user north south east west spring summer winter hour minute week
month century past future event result reason cause effect method theory science art language
culture nature sea lake hill forest rain snow wind storm fire earth sun moon star sky air black
red blue green brown yellow dark bright hot cold warm cool dry wet soft hard strong weak heavy
deep wide short tall thin thick round flat sharp rich poor free quiet fast slow easy simple
common rare single double human local foreign modern natural final total main major minor legal
medical military political
"""
WORDS: Final[tuple[str, ...]] = tuple(_IN_ORDER.split())
